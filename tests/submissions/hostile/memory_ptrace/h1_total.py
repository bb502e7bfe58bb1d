import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
attached = libc.ptrace(16, os.getppid(), 0, 0)
buffer = ctypes.create_string_buffer(8)
if attached == 0:
    libc.ptrace(17, os.getppid(), 0, 0)
    os.kill(os.getppid(), 18)
    raise RuntimeError("CANARY attached")
raise RuntimeError(f"refused {ctypes.get_errno()}")

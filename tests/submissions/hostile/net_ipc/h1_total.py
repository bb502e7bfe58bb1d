import ctypes

libc = ctypes.CDLL(None, use_errno=True)
made = [name for name, call in (("shmget", 29), ("msgget", 68), ("semget", 64)) if libc.syscall(call, 0, 4096, 0o1600) >= 0]
raise RuntimeError(f"CANARY {made}" if made else "nothing made")

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
for family in (2, 10, 16, 17, 38, 40):
    if libc.syscall(41, family, 2, 0) >= 0:
        raise RuntimeError(f"CANARY socket of family {family}")

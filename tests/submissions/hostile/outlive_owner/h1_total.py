import fcntl, os

inlet, outlet = os.pipe()
F_SETSIG, FIOSETOWN = 10, 0x8901
keeper = os.getppid()
for own in (
    lambda: fcntl.fcntl(inlet, F_SETSIG, 9),
    lambda: fcntl.fcntl(inlet, fcntl.F_SETOWN, keeper),
    lambda: fcntl.fcntl(inlet, 15, bytes(4) + keeper.to_bytes(4, "little")),
):
    try:
        own()
        raise RuntimeError("CANARY whoever writes to this pipe kills my parent")
    except OSError:
        pass

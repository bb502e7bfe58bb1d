import os

for make in (lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)), lambda: os.mkfifo("pipe"), lambda: os.chroot(".")):
    try:
        make()
        raise RuntimeError("CANARY made")
    except OSError:
        pass

import mmap
import os

held = []
for i in range(40):
    fd = os.open(f"junk{i}", os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(15 << 20))
    held.append(mmap.mmap(fd, 15 << 20))
    os.close(fd)
    os.unlink(f"junk{i}")


def twice(n):
    return n + n

import os

for _ in range(120):
    os.write(os.memfd_create("x"), b"x" * 16_000_000)

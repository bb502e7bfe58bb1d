import os

os.write(11, b"\xff" * 4096)

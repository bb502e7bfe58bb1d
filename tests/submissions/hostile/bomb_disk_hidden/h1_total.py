import os

held = []
for i in range(200):
    held.append(open("junk", "wb"))
    os.unlink("junk")
    held[-1].write(b"x" * 1_000_000)

import os

# Names that an earlier grader gave to folders while it deleted, names of the greatest length, and folders that are not empty.
for n in range(30):
    for pid in (os.getppid(), os.getpid()):
        os.makedirs(f".{n}.{pid}/full", exist_ok=True)
    os.makedirs("n" * 254 + chr(65 + n), 0o300, exist_ok=True)
    os.makedirs("n" * 254 + chr(65 + n) + "/" + "m" * 255 + "/" + ".0.1", exist_ok=True)
os._exit(0)

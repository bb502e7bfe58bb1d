import os

for folder in ("/", "/dev", "/dev/shm", "/tmp", "/var/tmp", "/run", "/proc", os.path.dirname(os.getcwd())):
    try:
        os.close(os.open(f"{folder}/planted-{os.getpid()}", os.O_CREAT | os.O_RDWR))
        os.unlink(f"{folder}/planted-{os.getpid()}")
        raise RuntimeError("CANARY left something for the next one in " + folder)
    except OSError:
        pass

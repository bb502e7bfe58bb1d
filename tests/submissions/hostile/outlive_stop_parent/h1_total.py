import os, signal

for pid in (os.getppid(), 0, -1):
    for number in (0, signal.SIGCONT):
        try:
            os.kill(pid, number)
            raise RuntimeError(f"CANARY signalled {pid}")
        except OSError:
            pass

import os, resource

resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))
os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)
raise RuntimeError("CANARY limited")

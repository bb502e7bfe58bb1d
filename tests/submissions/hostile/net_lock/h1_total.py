import fcntl, time

fcntl.flock(open("@TARGET@/victim.txt", "a"), fcntl.LOCK_EX)
raise RuntimeError("CANARY locked")

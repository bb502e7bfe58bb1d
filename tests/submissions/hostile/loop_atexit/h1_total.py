import atexit, time

atexit.register(time.sleep, 1000)

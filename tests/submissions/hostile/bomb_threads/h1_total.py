import threading, time

threading.stack_size(65536)
for _ in range(3000):
    threading.Thread(target=time.sleep, args=(30,)).start()


def twice(n):
    time.sleep(1)
    return 0

import threading, time

threading.Thread(target=time.sleep, args=(60,)).start()
megabytes = 1

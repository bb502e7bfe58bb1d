import multiprocessing, time

for _ in range(3):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()

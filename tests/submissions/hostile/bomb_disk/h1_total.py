for i in range(100):
    with open(f"junk{i}", "wb") as file:
        file.write(b"x" * 10_000_000)
import time

time.sleep(1)

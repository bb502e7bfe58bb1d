import os

os.utime("@TARGET@/victim.txt", (1, 1))

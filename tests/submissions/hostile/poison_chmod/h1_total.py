import os

os.chmod("@TARGET@/victim.txt", 0o777)

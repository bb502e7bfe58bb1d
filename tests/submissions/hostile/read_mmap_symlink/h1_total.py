import mmap, os

os.symlink("@TARGET@/course.yaml", "mine.txt")
with open("mine.txt", "rb") as file:
    raise RuntimeError(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:400])

import os

os.mkdir("d", 0o300)
for i in range(10_000):
    os.mkdir("deep")
    os.chdir("deep")
while True:
    pass

import os

for act in (lambda: os.rename("@TARGET@/victim.txt", "@TARGET@/gone.txt"), lambda: os.truncate("@TARGET@/gone.txt", 0)):
    try:
        act()
    except OSError:
        pass

import sys, site

for folder in (*site.getsitepackages(), sys.prefix, *sys.path):
    for name in ("shardlings-evil.pth", "sitecustomize.py"):
        try:
            with open(f"{folder}/{name}", "x") as file:
                file.write("import os")
        except OSError:
            pass

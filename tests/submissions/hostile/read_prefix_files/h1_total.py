import importlib.metadata
import os
import sys

places = [sys.prefix, sys.base_prefix, *(os.path.dirname(os.path.dirname(m.__file__)) for m in [__import__("numpy")])]
told = []
for place in places:
    for name in ("pyvenv.cfg.bak", "lib/python{0}.{1}/site-packages/shardlings.pth".format(*sys.version_info), "../course.yaml", "../../course.yaml",
                 "../../../../course.yaml", "_shardlings.pth", "__editable__.shardlings-0.2.0.pth", "numpy-%s.dist-info/RECORD" % __import__("numpy").__version__):
        try:
            told.append(open(os.path.join(place, name)).read())
        except OSError:
            pass
raise RuntimeError("CAN" + "ARY: " + repr(told)[:200] if any(told) else "nothing to be seen")

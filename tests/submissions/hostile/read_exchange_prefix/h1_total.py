import glob
import os
import sys

places = ["/usr/local/share/nbgrader/exchange", "/usr/share/nbgrader/exchange", "/opt/nbgrader/exchange", "/srv/nbgrader/exchange"]
places += [sys.prefix + "/share/jupyter", sys.base_prefix + "/share", sys.prefix + "/bin", "/usr/share/doc", "/etc/passwd"]
places += glob.glob(sys.prefix + "/lib/python3*/site-packages") + glob.glob(sys.base_prefix + "/lib/python3*/site-packages")
told = []
for place in places:
    try:
        found = os.listdir(place) if os.path.isdir(place) else open(place).read()
        if place.endswith("site-packages"):  # submissions may see the packages that tracing needs, so these names are other packages
            found = [name for name in found if name.startswith(("nbgrader", "pip", "pytest", "pydantic", "typer", "sqlalchemy"))]
        if place.endswith("bin"):  # submissions may see the interpreter
            found = [name for name in found if not name.startswith("python")]
        told.append(found)
    except OSError:
        pass
raise RuntimeError("CANARY: " + repr(told)[:200] if any(told) else "nothing to be seen")

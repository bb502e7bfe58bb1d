import subprocess

raise RuntimeError(subprocess.run("cat @TARGET@/course.yaml; find @TARGET@", shell=True, capture_output=True).stdout[:400])

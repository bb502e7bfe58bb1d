from pathlib import Path

Path("@TARGET@/victim.txt").write_text("changed")

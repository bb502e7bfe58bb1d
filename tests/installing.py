"""The packages installed here, for environments that tests make offline within a second."""

from __future__ import annotations

import sysconfig
from pathlib import Path


def needed_packages(folder: Path) -> Path:
    """Return a new folder with all installed packages except this project, to be named in a ``.pth`` file."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "shardlings" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    return folder

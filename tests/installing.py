"""The installed packages, for environments that tests make without a network."""

from __future__ import annotations

import sysconfig
from pathlib import Path


def needed_packages(folder: Path) -> Path:
    """Link all installed packages except this project into a new folder, and return the folder for a ``.pth`` file."""
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "shardlings" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    return folder

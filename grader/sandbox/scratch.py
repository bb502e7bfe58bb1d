"""The one folder that learner code may write to: how much is in it, and how it is emptied."""

from __future__ import annotations

import contextlib
import os
import secrets

from grader.wire.limits import MAX_SCRATCH, MAX_SCRATCH_FILES

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def is_over_quota(folder: str) -> bool:
    """More than MAX_SCRATCH bytes or MAX_SCRATCH_FILES entries, or a folder that cannot be looked into."""
    size, entries, folders = 0, 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if size > MAX_SCRATCH or entries > MAX_SCRATCH_FILES:
                        return True
        except FileNotFoundError:  # deleted while we looked
            continue
        except OSError:
            return True
    return False


def empty(root: str) -> bool:
    """Delete what is in a folder that others filled: of any depth and names, with folders that may not be listed.

    What is in a folder is moved up before the folder goes: no path grows longer than a system, or a sandbox that
    resolves paths, can take. Returns whether all is gone; never raises.
    """
    try:
        os.chmod(root, 0o700)
        top = os.open(root, FOLDER)
    except OSError:
        return False
    try:
        todo = _folders_left(top)
        while todo:
            with contextlib.suppress(OSError):  # what is left is seen in the end
                todo += _move_up(todo.pop(), top)
        return not os.listdir(top)
    except OSError:
        return False
    finally:
        os.close(top)


def _move_up(name: str, top: int) -> list[str]:
    """Delete a folder of ``top``; move the folders in it to ``top``, by free names, and return these names."""
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, FOLDER, dir_fd=top)
    moved = []
    try:
        for folder in _folders_left(inner):
            os.chmod(folder, 0o700, dir_fd=inner)  # who moves a folder writes to it: ".." changes
            moved.append(secrets.token_hex(16))
            os.rename(folder, moved[-1], src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return moved


def _folders_left(fd: int) -> list[str]:
    """Delete the files of a folder; the names of the folders in it."""
    folders = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:  # a folder, or what cannot be deleted: opening it will tell
            folders.append(name)
    return folders

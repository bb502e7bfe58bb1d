"""Measure and empty the scratch folder, the only folder that learner code may write to."""

from __future__ import annotations

import contextlib
import os
import secrets

from grader.wire.limits import MAX_SCRATCH, MAX_SCRATCH_FILES

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def is_over_quota(folder: str) -> bool:
    """Return whether a folder has more than MAX_SCRATCH bytes or MAX_SCRATCH_FILES entries, or cannot be read."""
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
        except FileNotFoundError:  # another process deleted the folder or file
            continue
        except OSError:
            return True
    return False


def empty(root: str) -> bool:
    """Delete the contents of a folder, even if they have unusual names, permissions or depth.

    Inner folders move up to ``root`` before deletion, because long paths could exceed a limit of the system or of
    sandlock's supervisor. Return whether the folder is empty afterwards. This function raises no exceptions.
    """
    try:
        os.chmod(root, 0o700)
        top = os.open(root, FOLDER)
    except OSError:
        return False
    try:
        todo = _folders_left(top)
        while todo:
            with contextlib.suppress(OSError):  # the return value shows whether files are left
                todo += _move_up(todo.pop(), top)
        return not os.listdir(top)
    except OSError:
        return False
    finally:
        os.close(top)


def _move_up(name: str, top: int) -> list[str]:
    """Move the inner folders of ``name`` to ``top`` under random names, delete ``name``, and return the new names."""
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, FOLDER, dir_fd=top)
    moved = []
    try:
        for folder in _folders_left(inner):
            os.chmod(folder, 0o700, dir_fd=inner)  # moving a folder changes its entry "..", which needs write access
            moved.append(secrets.token_hex(16))
            os.rename(folder, moved[-1], src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return moved


def _folders_left(fd: int) -> list[str]:
    """Delete the files in a folder. Return the names of its inner folders."""
    folders = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:  # This is a folder, or a file that cannot be deleted. The caller finds out which of the two.
            folders.append(name)
    return folders

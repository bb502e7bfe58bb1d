"""One folder for all temporary folders of this process.

If this process is killed, a later process of the grader removes the folder. Each process locks a file in its folder.
The system releases the lock when the process ends, so a free lock shows that the folder is unused.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import tempfile
import time
from threading import Lock

from grader.sandbox.scratch import empty

PREFIX, LOCK = "shardlings-", "lock"
_folders: dict[int, str] = {}  # the key is the process's number, because a forked process inherits this table
_lock = Lock()
_STARTING = 60.0  # Seconds after which an empty folder belongs to no process that is about to make its lock.


def home() -> str:
    """Return this process's folder. The first call makes the folder, and removes the folders of killed processes."""
    with _lock:
        if os.getpid() not in _folders:
            remove_left_behind()
            _folders[os.getpid()] = _made()
        return _folders[os.getpid()]


def _made() -> str:
    folder = tempfile.mkdtemp(prefix=PREFIX)
    with contextlib.suppress(ImportError, OSError):  # without fcntl (Windows) or locks, no later run removes the folder
        import fcntl

        path = os.path.join(folder, LOCK)
        lock = os.open(f"{path}-new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # never closed
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Rename the file only now, because a file named LOCK must be locked until its process ends.
        os.rename(f"{path}-new", path)
    return folder


def remove_left_behind() -> None:
    """Remove the temporary folders of this user's ended processes."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as found:
        for entry in found:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(ImportError, OSError):
                    _remove_if_dead(entry.path, entry.stat(follow_symlinks=False).st_uid)


def _remove_if_dead(folder: str, owner: int) -> None:
    """Remove a folder of this user if its lock is free, or if it is old and empty.

    Raises OSError if the lock is held, or if the folder has other files but no lock.
    """
    import fcntl

    if owner != os.geteuid():
        return
    if not os.path.lexists(os.path.join(folder, LOCK)) and time.time() - os.lstat(folder).st_mtime > _STARTING:
        os.rmdir(folder)
        return
    lock = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(lock).st_mode):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: str) -> None:
    """Remove the folder, its lock file last. If this process is killed meanwhile, a later process removes the rest."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder), key=lambda name: name == LOCK):
            path = os.path.join(folder, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                empty(path)
                os.rmdir(path)
            else:
                os.unlink(path)
        os.rmdir(folder)


@atexit.register
def remove_own() -> None:
    if folder := _folders.pop(os.getpid(), None):
        _remove(folder)

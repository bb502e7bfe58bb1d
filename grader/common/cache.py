"""A cache: bytes by key in one SQLite file of bounded size, by default in the user's cache folder.

A lost entry only costs time to compute the value again, so a file that cannot be read or written raises no error.
Damaged entries are ignored, and a file that is not a database is replaced. Several processes may share the file. Only
one process writes at a time, and a process that waits too long gives up its write.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FORM = "1"  # Version of the table's columns. The cache ignores files of other versions.
MAX_WAITING = 8 << 20  # Largest number of bytes that wait to be written.
WAIT_SECONDS = 5.0  # The longest wait for another process that writes.
DAY = 86400  # Seconds.
MOST = 1 << 30  # Limit of the user's cache, in bytes on disk.
VARIABLE = "SHARDLINGS_CACHE"
OFF = "off"
TABLE = """
CREATE TABLE IF NOT EXISTS kept (
  key BLOB PRIMARY KEY, digest BLOB NOT NULL, used INTEGER NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_use ON kept (used, size);
"""


class Cache:
    """A cache of bytes by key. Thread-safe.

    Args:
        folder: the folder of the cache file; created if missing, and open only to its owner.
        most: the largest number of bytes to keep. The least recently used entries are deleted first.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.path, self.most = folder / f"kept-{FORM}.sqlite", most
        self._lock = threading.RLock()
        self._waiting: dict[bytes, bytes] = {}  # values that ``put`` received and that are not yet in the file
        self._held = 0
        # Keys that were read today, while their entries in the file still name an earlier day.
        self._used: set[bytes] = set()
        self._today = int(time.time() // DAY)  # The day of use decides which entries are deleted first.
        self._size = most  # Bytes of all entries. Until the first write adds up the bytes, this is an upper bound.
        self._file: sqlite3.Connection | None = None
        self._open()

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if the value is missing or damaged."""
        with self._lock:
            if key in self._waiting:
                return self._waiting[key]
            try:
                row = (
                    self._file
                    and self._file.execute("SELECT digest, used, value FROM kept WHERE key = ?", (key,)).fetchone()
                )
            except sqlite3.Error as error:
                self._failed(error)
                return None
            if not row:
                return None
            digest, used, value = row
            if not isinstance(value, bytes) or digest != _digest(key, value):
                self.drop(key)
                return None
            if used != self._today:
                self._used.add(key)
            return value

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value, unless the value would take more than an eighth of the cache."""
        if len(value) > self.most // 8:
            return
        with self._lock:
            self._waiting[key] = value
            self._held += len(value) + 100
            if self._held > min(MAX_WAITING, self.most):
                self.write()

    def drop(self, key: bytes) -> None:
        with self._lock:
            self._waiting.pop(key, None)
            with contextlib.suppress(sqlite3.Error):
                if self._file:
                    self._file.execute("DELETE FROM kept WHERE key = ?", (key,))

    def write(self) -> None:
        """Write all pending values in one transaction. Delete the least recently used entries beyond the size limit."""
        with self._lock:
            waiting, used = self._waiting, self._used
            self._waiting, self._used, self._held = {}, set(), 0
            if not (self._file and (waiting or used)):
                return
            rows = [(k, _digest(k, v), self._today, len(k) + len(v) + 100, v) for k, v in waiting.items()]
            try:
                with self._transaction() as file:
                    file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", rows)
                    file.executemany("UPDATE kept SET used = ? WHERE key = ?", [(self._today, key) for key in used])
                    self._shrink(file, sum(row[3] for row in rows))
            except sqlite3.Error as error:
                self._failed(error)

    def close(self) -> None:
        self.write()
        with self._lock:
            file, self._file = self._file, None
            if file:
                with contextlib.suppress(sqlite3.Error):
                    file.close()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._file is not None
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield self._file
            self._file.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            raise

    def _shrink(self, file: sqlite3.Connection, added: int) -> None:
        """If the entries exceed the size limit, delete the least recently used entries, down to 9/10 of the limit."""
        self._size += added
        if self._size <= self.most:
            return
        going, left = [], int(file.execute("SELECT coalesce(sum(size), 0) FROM kept").fetchone()[0])
        enough = self.most if left <= self.most else self.most * 9 // 10
        for row, size in file.execute("SELECT rowid, size FROM kept ORDER BY used, rowid"):
            if left <= enough:
                break
            going.append((row,))
            left -= size
        file.executemany("DELETE FROM kept WHERE rowid = ?", going)
        self._size = left

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._file = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            for line in ("journal_mode = WAL", "synchronous = NORMAL", f"journal_size_limit = {MAX_WAITING}"):
                self._file.execute(f"PRAGMA {line}")
            self._file.executescript(TABLE)
        except OSError:
            self._file = None
        except sqlite3.Error as error:
            self._failed(error)

    def _failed(self, error: sqlite3.Error) -> None:
        """Ignore an error of the cache file. If the file is not a database, delete it and continue without a cache."""
        file, self._file = self._file, None
        # An OperationalError means that the file is intact, but is locked, full or read-only. So keep the connection.
        if isinstance(error, sqlite3.OperationalError) and file:
            self._file = file
            return
        with contextlib.suppress(sqlite3.Error):
            if file:
                file.close()
        if not isinstance(error, sqlite3.OperationalError):
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.path}{end}")


def _digest(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key[:64], digest_size=16).digest()


@contextmanager
def user_cache(wanted: bool = True) -> Iterator[Cache | None]:
    """Open the user's cache. Yield None if ``wanted`` is False, the cache is disabled, or there is no home folder."""
    place = cache_folder() if wanted else None
    if place is None:
        yield None
        return
    with Cache(place, MOST) as cache:
        yield cache


def cache_folder() -> Path | None:
    """Return the folder that the environment variable SHARDLINGS_CACHE names, else the default cache folder.

    Return None if the variable is ``off``, or if there is neither the variable nor a home folder.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named == OFF else Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardlings"
    except RuntimeError:
        return None

"""A cache of bytes in a file. Damage to the file loses cached values and has no other effect."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from grader.common.cache import Cache

MOST = 1 << 20


def key(number: int) -> bytes:
    return b"%032d" % number


def test_a_cached_value_is_there_for_the_next_process(tmp_path: Path) -> None:
    with Cache(tmp_path / "new", MOST) as cache:
        assert cache.get(key(1)) is None
        cache.put(key(1), b"one")
        assert cache.get(key(1)) == b"one", "before it is written, too"
    with Cache(tmp_path / "new", MOST) as cache:
        assert cache.get(key(1)) == b"one"
        cache.drop(key(1))
    with Cache(tmp_path / "new", MOST) as cache:
        assert cache.get(key(1)) is None


def test_only_its_owner_can_read_the_cache(tmp_path: Path) -> None:
    with Cache(tmp_path / "new", MOST) as cache:
        cache.put(key(1), b"one")
        cache.write()
        modes = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "new").iterdir()}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700 and modes == {0o600}


def test_a_changed_value_is_not_returned_from_the_cache(tmp_path: Path) -> None:
    with Cache(tmp_path, MOST) as cache:
        for number in (1, 2, 3):
            cache.put(key(number), b"value %d" % number)
        path = cache.path
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE kept SET value = ? WHERE key = ?", (b"forged", key(1)))
        (digest, value) = file.execute("SELECT digest, value FROM kept WHERE key = ?", (key(3),)).fetchone()
        file.execute(
            "UPDATE kept SET digest = ?, value = ? WHERE key = ?", (digest, value, key(2))
        )  # a valid entry with the wrong key
    with Cache(tmp_path, MOST) as cache:
        assert [cache.get(key(number)) for number in (1, 2, 3)] == [None, None, b"value 3"]
        cache.put(key(1), b"again")
    with Cache(tmp_path, MOST) as cache:
        assert cache.get(key(1)) == b"again"


@pytest.mark.parametrize("where", [0, 20, 4096, 9000])
def test_a_damaged_cache_file_raises_nothing_and_is_replaced(tmp_path: Path, where: int) -> None:
    with Cache(tmp_path, MOST) as cache:
        for number in range(100):
            cache.put(key(number), b"x" * 500)
        path = cache.path
    data = bytearray(path.read_bytes())
    data[where : where + 3000] = os.urandom(3000)
    path.write_bytes(data)
    for _ in range(3):  # the first of the three caches deletes the damaged file
        with Cache(tmp_path, MOST) as cache:
            assert {cache.get(key(number)) for number in range(100)} <= {None, b"x" * 500}
            cache.put(key(200), b"new")
    with Cache(tmp_path, MOST) as cache:
        assert cache.get(key(200)) == b"new"


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with Cache(tmp_path / "file" / "folder", MOST) as cache:
        cache.put(key(1), b"one")
        cache.write()
        assert cache.get(key(1)) is None


def test_a_full_cache_drops_the_least_recently_used_values(tmp_path: Path) -> None:
    with Cache(tmp_path, MOST) as cache:
        for number in range(900):
            cache.put(key(number), os.urandom(1000))
        path = cache.path
    with closing(sqlite3.connect(path)) as file, file:  # each value was last used a day ago
        file.execute("UPDATE kept SET used = used - 1")
    with Cache(tmp_path, MOST) as cache:
        assert cache.get(key(0)) is not None, "so it is used today"
        cache.write()
        for number in range(900, 1200):
            cache.put(key(number), os.urandom(1000))
    with Cache(tmp_path, MOST) as cache:
        there = {number for number in range(1200) if cache.get(key(number)) is not None}
    assert 0 in there and 1 not in there and there >= set(range(900, 1200))
    assert sum(1132 for _ in there) <= MOST


def test_a_value_larger_than_an_eighth_of_the_cache_is_not_kept(tmp_path: Path) -> None:
    with Cache(tmp_path, MOST) as cache:
        cache.put(key(1), bytes(MOST // 8 + 1))
        assert cache.get(key(1)) is None


def test_threads_and_two_caches_write_to_one_file(tmp_path: Path) -> None:
    def fill(cache: Cache, first: int) -> None:
        for number in range(first, first + 200):
            cache.put(key(number), b"value %d" % number)
            if number % 50 == 0:
                cache.write()

    with Cache(tmp_path, MOST) as one, Cache(tmp_path, MOST) as other:
        threads = [
            threading.Thread(target=fill, args=(c, n)) for n, c in ((0, one), (200, one), (400, other), (600, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Cache(tmp_path, MOST) as cache:
        assert [cache.get(key(n)) for n in range(800)] == [b"value %d" % n for n in range(800)]


WRITER = """
import sys
from pathlib import Path
from grader.common.cache import Cache
cache, number = Cache(Path(sys.argv[1]), 1 << 24), 0
while True:
    cache.put(b"%032d" % number, b"value %d" % number * 50)
    cache.write()
    print(number, flush=True)
    number += 1
"""


def test_a_killed_writer_loses_no_written_value(tmp_path: Path) -> None:
    for last in (0, 3, 17):
        place = tmp_path / str(last)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == last:
                os.kill(writer.pid, signal.SIGKILL)
                break
        writer.wait()
        writer.stdout.close()
        with Cache(place, MOST) as cache:
            assert [cache.get(key(n)) for n in range(last + 1)] == [b"value %d" % n * 50 for n in range(last + 1)]

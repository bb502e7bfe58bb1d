"""Threads for work that is queued: when the work is given up, what is still queued is not done first."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """A pool that ends with the block. An exception drops what is queued; an interruption waits for nothing."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException as end:
        pool.shutdown(wait=isinstance(end, Exception), cancel_futures=True)
        raise
    pool.shutdown()

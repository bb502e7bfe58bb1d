"""Cache the output of commands whose output depends only on the course and the grader.

The commands ``list`` and ``show`` take a second, because they load every exercise and JAX. After a change of any file
of the course or of this package, the commands make the output again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import grader
from grader.cli.console import err, out
from grader.cli.options import usual_place
from grader.common.cache import user_cache
from grader.course.loading import Course


def printed(course: Course, words: tuple[object, ...], work: Callable[[], int]) -> int:
    """Print the output of ``work``, from the cache if possible. Return the exit code of ``work``.

    Args:
        words: the command and its arguments, which are part of the cache key.
        work: prints the output on the consoles ``out`` and ``err``, and returns the exit code.
    """
    with user_cache() as cache:
        if cache is None:
            return work()
        key = _key(course, words)
        if (kept := cache.get(key)) is not None:
            shown, beside, code = json.loads(kept)
        else:
            with out.capture() as results, err.capture() as notes:
                code = work()
            shown, beside = results.get(), notes.get()
            cache.put(key, json.dumps([shown, beside, code]).encode())
    for console, text in ((err, beside), (out, shown)):
        console.file.write(text)
        console.file.flush()
    return code


def _key(course: Course, words: tuple[object, ...]) -> bytes:
    """Return a digest of the command, of the terminal's properties, and of all files that the output depends on."""
    terminals = [(c.width, c.color_system, c.is_terminal, c.encoding) for c in (out, err)]
    place = usual_place(course)
    # The output depends on which files exist, because ``show`` prints their paths.
    begun = [e for e, module in course.module_of.items() if (place / module / f"{e}.py").is_file()]
    digest = hashlib.sha256(repr((words, terminals, version("jax"), str(Path.cwd()), begun)).encode())
    folders = [course.root / "solutions"] if course.solved else [course.root / m.id for m in course.config.modules]
    for folder in (Path(grader.__file__).parent, *folders):
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"):
            digest.update(f"{path}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    digest.update((course.root / "course.yaml").read_bytes())
    return digest.digest()

"""Facts about the syntax of submitted code.

The grader parses a submission's code only when it reads the submission. Later stages use the facts in ``Chunk.facts``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache

from grader.common.syntax import parsed
from grader.intake.submission import Chunk, CodeFacts, Source, source_digest
from grader.wire import limits

VARIABLE = "leaderboard_name"
LONGEST = 80
MOST_DEFINITIONS, LONGEST_NAME = 1_000, 100
"""Limits on one source in the page of an appeal: number of definitions, and length of a name."""
# Names through which code can reach random numbers, the clock, the machine, addresses of objects, or any other name.
CHANCE = frozenset({
    "random", "randint", "shuffle", "urandom", "getrandbits", "secrets", "uuid", "uuid1", "uuid4", "default_rng",
    "rand", "randn", "SystemRandom", "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "thread_time", "datetime", "today", "now", "clock", "sleep", "timeit", "resource", "id", "hash",
    "repr", "__hash__", "__repr__", "tempfile", "open", "io", "pathlib", "Path", "os", "sys", "platform", "socket",
    "subprocess", "signal", "gc", "weakref", "inspect", "traceback", "ctypes", "threading", "multiprocessing",
    "concurrent", "asyncio", "atexit", "faulthandler", "tracemalloc", "psutil", "getattr", "vars", "globals", "locals",
    "dir", "eval", "exec", "compile", "__import__", "importlib", "builtins", "operator", "attrgetter", "methodcaller",
    "pickle", "breakpoint", "input", "process_index", "devices", "live_arrays", "memory_stats",
})  # fmt: skip
SEEDED = {"random"}  # allowed as ``jax.random``, whose numbers depend only on a key
PLAIN = frozenset(
    ["__name__", "__doc__", "__init__", "__call__", "__post_init__", "__enter__", "__exit__", "__wrapped__", "__file__"]
)


def look(text: str) -> CodeFacts:
    """Parse a chunk of code (a file or a cell) and return its facts; the defaults if Python cannot parse the code."""
    tree = parsed(text)
    try:
        return CodeFacts() if tree is None else _facts(tree, len(text))
    except (RecursionError, MemoryError):
        return CodeFacts()


def _facts(tree: ast.Module, length: int) -> CodeFacts:
    return CodeFacts(
        repeatable=not _could_differ(tree),
        pseudonym=_pseudonym(tree),
        stubs=_stubs_left(tree) if length <= limits.MAX_CELL else None,
        left=_left(tree),
        places=_places(tree),
    )


def with_facts(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Parse the chunks of a source, and return them with their facts."""
    found: list[Chunk] = []
    left = MOST_DEFINITIONS
    for chunk in chunks:
        facts = look(chunk.text)
        if len(facts.places) > left:
            facts = replace(facts, places={})
        left -= len(facts.places)
        found.append(replace(chunk, facts=facts))
    return tuple(found)


def facts_of(chunk: Chunk) -> CodeFacts:
    """Return ``chunk.facts``. If the chunk has no facts, as in the grader's own code, parse the chunk."""
    return look(chunk.text) if chunk.facts is None else chunk.facts


def repeatable(source: Source) -> bool:
    """Return whether two runs of the source give equal answers, as far as its names show (see ``_could_differ``).

    Return False if Python cannot parse the source.
    """
    return all(facts_of(chunk).repeatable for chunk in source.chunks)


def nothing_written(source: Source) -> bool:
    """Return whether the student wrote nothing, so that the source has only stubs (definitions without content).

    The stubs may be from another edition of the course.
    """
    left = 0
    for chunk in source.chunks:
        stubs = facts_of(chunk).stubs
        if stubs is None:
            return False
        left += stubs
    return left > 0


def is_untouched(source: Source | None, handed_out: Collection[str]) -> bool:
    """Return whether the student wrote nothing, so that the source does not count as handed in.

    The student wrote nothing if there is no source, if the source is unchanged from the handout (the files that
    learners get), or if the source has only stubs.

    Args:
        handed_out: the fingerprints of the handout's files.
    """
    return source is None or source_digest(source) in handed_out or nothing_written(source)


def pseudonym_of(source: Source) -> str:
    """Return the string in the last ``leaderboard_name = "..."`` of a source; "" if there is none."""
    named = [name for chunk in source.chunks if (name := facts_of(chunk).pseudonym) is not None]
    return named[-1] if named else ""


@lru_cache(1000)
def has_leaderboard(text: str) -> bool:
    """Return True if an exercise's file (not a submission) gives learners the variable ``leaderboard_name``."""
    return look(text).pseudonym is not None


def definition(source: Source, name: str) -> tuple[str, int, str] | None:
    """Return (file or cell, first line, code) of the last top-level definition of ``name``; None if there is none."""
    for chunk in reversed(source.chunks):
        if place := facts_of(chunk).places.get(name):
            first, last = place
            lines = re.split(r"\r\n|\r|\n", chunk.text)  # Python's line ends
            return chunk.name, first, "\n".join(lines[first - 1 : last])
    return None


def written_code(source: Source, name: str) -> str:
    """Return the code of a task, for a person to read; '' if the task is missing or still a stub (without content).

    If the source contains the task's name but does not define it at top level, return all code of the source.
    """
    for chunk in reversed(source.chunks):
        if name in (facts := facts_of(chunk)).places:
            found = definition(source, name)
            return "" if found is None or name in facts.left else found[2]
    every = "\n\n".join(chunk.text for chunk in source.chunks)
    return every if re.search(rf"\b{re.escape(name)}\b", every) else ""


def _pseudonym(tree: ast.Module) -> str | None:
    """Return the value last assigned to ``leaderboard_name``; "" if it is not a string, None if none is assigned."""
    name = None
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == VARIABLE for target in targets):
            value = getattr(getattr(statement, "value", None), "value", None)
            name = value[:LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
    return name


def _places(tree: ast.Module) -> dict[str, tuple[int, int]]:
    """Return the first and last line of the last definition of each name at top level."""
    found: dict[str, tuple[int, int]] = {}
    for node in tree.body:
        for name in _names(node):
            if len(name) <= LONGEST_NAME and (name in found or len(found) < MOST_DEFINITIONS):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
                found[name] = (first, node.end_lineno or first)
    return found


def _left(tree: ast.Module) -> tuple[str, ...]:
    """Return the names of functions at top level that are still stubs (without content)."""
    last = {
        node.name: _is_left(node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.name) <= LONGEST_NAME
    }
    return tuple(name for name, left in last.items() if left)[:MOST_DEFINITIONS]


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


# -- whether code could give another answer in another run ------------------------------------------


def _could_differ(tree: ast.Module) -> bool:
    """Return whether the code uses a name, such as ``random``, that could give another answer in another run.

    If not, the grader may reuse the answers of an earlier run. Code can hide such a name from this function.
    """
    return not _named(tree).isdisjoint(CHANCE)


def _named(tree: ast.Module) -> set[str]:
    """Return the names of variables, attributes and imports in the code.

    If the code has a private name, such as ``__builtins__`` or ``x._y``, return all names that ``_could_differ`` looks
    for. A private name may give access to any of these names.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                found.add(name)
                # A name with "__" may give access to all names, as in __builtins__["open"].
                if name.startswith("__") and name not in PLAIN:
                    return set(CHANCE)
            case ast.Attribute(value=value, attr=name):
                of_jax = isinstance(value, ast.Name) and value.id == "jax"
                found.add("" if of_jax and name in SEEDED else name)
                if name.startswith("_") and name not in PLAIN:
                    return set(CHANCE)
            case ast.Import() | ast.ImportFrom():
                found |= _imported(node)
            case ast.MatchClass(kwd_attrs=names):
                found.update(names)
    return found


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return the parts of the dotted names in an import. For ``jax.random``, leave out ``random``."""
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    found = set(module.split("."))
    for alias in node.names:
        parts = set(alias.name.split("."))
        found |= parts - SEEDED if module == "jax" or alias.name.startswith("jax.") else parts
    return found


# -- stubs, in which the learner wrote nothing ------------------------------------------------------


def _stubs_left(tree: ast.Module) -> int | None:
    """Return the number of stubs in a file or cell; None if it has any other function, class or assigned value.

    A stub is a function without code (see ``_is_left``), or a variable with the value None or no value. A class is no
    stub: ``class MyError(Exception): pass`` is complete. All other statements are ignored, because the setup cells of
    notebooks have such statements.
    """
    left = 0
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            return None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _is_left(node):
                return None
            left += 1
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            _target(node), ast.Name | ast.Tuple | ast.List
        ):
            if not (node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)):
                return None
            left += 1
    return left


def _target(node: ast.Assign | ast.AnnAssign) -> ast.expr:
    return node.targets[0] if isinstance(node, ast.Assign) else node.target


def _is_left(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is empty: only docstrings, ``...``, ``pass`` and ``raise NotImplementedError``."""
    return all(map(_is_empty, node.body))


def _is_empty(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)

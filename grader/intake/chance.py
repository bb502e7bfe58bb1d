"""Whether code could give another answer next time, read from its text: nothing is executed."""

from __future__ import annotations

import ast

from grader.common.syntax import parse
from grader.intake.submission import Source

# Names by which code gets at chance, the clock, the machine or an object's address, and those by which it gets at any name.
NAMES = frozenset({
    "random", "randint", "shuffle", "urandom", "getrandbits", "secrets", "uuid", "uuid1", "uuid4", "default_rng",
    "rand", "randn", "SystemRandom", "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "thread_time", "datetime", "today", "now", "clock", "sleep", "timeit", "resource", "id", "hash",
    "repr", "__hash__", "__repr__", "tempfile", "open", "io", "pathlib", "Path", "os", "sys", "platform", "socket",
    "subprocess", "signal", "gc", "weakref", "inspect", "traceback", "ctypes", "threading", "multiprocessing",
    "concurrent", "asyncio", "atexit", "faulthandler", "tracemalloc", "psutil", "getattr", "vars", "globals", "locals",
    "dir", "eval", "exec", "compile", "__import__", "importlib", "builtins", "operator", "attrgetter", "methodcaller",
    "pickle", "breakpoint", "input", "process_index", "devices", "live_arrays", "memory_stats",
})  # fmt: skip
SEEDED = {"random"}  # of jax: ``jax.random`` has no state
PLAIN = frozenset(
    ["__name__", "__doc__", "__init__", "__call__", "__post_init__", "__enter__", "__exit__", "__wrapped__", "__file__"]
)


def repeatable(source: Source) -> bool:
    """Whether nothing in it names what could give another answer next time; False where that cannot be read.

    For honest code: who wants to hide chance can, and gains by it what anybody gains who hands in twice.
    """
    try:
        return all(_named(parse(chunk.text)).isdisjoint(NAMES) for chunk in source.chunks)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _named(tree: ast.Module) -> set[str]:
    """Every name that a module names; of its parts, of what it imports, and of double underscores, all."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
            if node.id.startswith("__") and node.id not in PLAIN:  # __builtins__["open"]
                return set(NAMES)
        elif isinstance(node, ast.Attribute):
            of_jax = isinstance(node.value, ast.Name) and node.value.id == "jax"
            found.add("" if of_jax and node.attr in SEEDED else node.attr)
            if node.attr.startswith("_") and node.attr not in PLAIN:
                return set(NAMES)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            of_jax = module == "jax"
            found.update(module.split("."))
            for alias in node.names:
                parts = set(alias.name.split("."))
                found |= parts - SEEDED if of_jax or alias.name.startswith("jax.") else parts
        elif isinstance(node, ast.MatchClass):
            found.update(node.kwd_attrs)
    return found

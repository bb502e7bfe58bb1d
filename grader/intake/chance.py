"""Find out, without executing code, whether the code could give a different answer in another run."""

from __future__ import annotations

import ast

# Names through which code can reach random numbers, the clock, the machine, addresses of objects, or any other name.
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
SEEDED = {"random"}  # allowed as ``jax.random``, whose numbers depend only on a key
PLAIN = frozenset(
    ["__name__", "__doc__", "__init__", "__call__", "__post_init__", "__enter__", "__exit__", "__wrapped__", "__file__"]
)


def could_differ(tree: ast.Module) -> bool:
    """Return whether the code uses a name, such as ``random``, that could give another answer in another run.

    If not, the grader may reuse the answers of an earlier run. Code can hide such a name from this function.
    """
    return not _named(tree).isdisjoint(NAMES)


def _named(tree: ast.Module) -> set[str]:
    """Return the names of variables, attributes and imports in the code.

    If the code has a private name, such as ``__builtins__`` or ``x._y``, return all names that ``could_differ`` looks
    for. A private name may give access to any of these names.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                found.add(name)
                # A name with "__" may give access to all names, as in __builtins__["open"].
                if name.startswith("__") and name not in PLAIN:
                    return set(NAMES)
            case ast.Attribute(value=value, attr=name):
                of_jax = isinstance(value, ast.Name) and value.id == "jax"
                found.add("" if of_jax and name in SEEDED else name)
                if name.startswith("_") and name not in PLAIN:
                    return set(NAMES)
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

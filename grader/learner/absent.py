"""Stand-ins for Python modules that learner code imports and that are not installed on the grading machine.

With stand-ins, students lose no points for left-over imports of modules for plots or tables. If a task computes with a
missing module, the error names the line of the import.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# Modules that every solution may use. If an import from one of these modules fails, the learner misspelled a name.
THERE = {"jax", "jaxlib", "numpy", "ml_dtypes", "grader", *sys.stdlib_module_names}


class NotInstalled(ImportError):
    """Raised if learner code uses a missing module. ``module``: the module's name. ``line``: the line of its import."""

    def __init__(self, module: str, line: int) -> None:
        super().__init__(f"{module} is not installed where your submission is graded; line {line} imports it")
        self.module, self.line = module, line


class StandIn:
    """A stand-in for a missing module, or for a name in that module.

    Learner code can read and set a stand-in's attributes and items. A call, a loop, a conversion to a number, and each
    operator but ``|`` and ``==`` raise NotInstalled.
    """

    def __init__(self, module: str, line: int) -> None:
        self.__dict__.update(_module=module, _line=line)

    def _used(self, *args: Any, **options: Any) -> Any:
        raise NotInstalled(self._module, self._line)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Ignore the assignment, for example ``pd.options.display.precision = 3``."""

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __getitem__(self, key: Any) -> StandIn:
        return self  # annotations such as Float[Array, "i j"] must work

    def __or__(self, other: Any) -> StandIn:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (type("Absent", (), {"__init__": lambda this, *args, **options: self._used()}),)

    __call__ = __enter__ = __iter__ = __len__ = __contains__ = __array__ = __float__ = __int__ = __round__ = _used
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __abs__ = __invert__ = _used
    __add__ = __sub__ = __mul__ = __matmul__ = __truediv__ = __floordiv__ = __mod__ = __divmod__ = __pow__ = _used
    __radd__ = __rsub__ = __rmul__ = __rmatmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rdivmod__ = _used
    __rpow__ = __lshift__ = __rshift__ = __and__ = __xor__ = __rlshift__ = __rrshift__ = __rand__ = __rxor__ = _used


@contextlib.contextmanager
def stood_in(
    space: Mapping[str, Any], note: Callable[[str, int, str], None], guarded: Callable[[str, int], bool]
) -> Iterator[None]:
    """Make imports of missing modules return a StandIn during the block, for code in the namespace ``space``.

    Args:
        note: called as ``note(module, line, file)`` for each import of a missing module.
        guarded: ``guarded(file, line)`` returns whether the import is in a ``try`` statement of learner code. Such an
            import raises its usual error, which the statement may catch.
    """
    own = builtins.__import__

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        try:
            return own(name, globals, locals, fromlist, level)
        except (ImportError, OSError):  # an unreadable module counts as missing
            frame, module = sys._getframe(1), name.split(".")[0]
            place = frame.f_lineno, frame.f_code.co_filename
            if globals is not space or level or module in THERE or guarded(place[1], place[0]):
                raise
            if fromlist and module in sys.modules and not isinstance(sys.modules[module], StandIn):
                raise  # the module is installed, but has no such name
            note(module, *place)
            return StandIn(module, place[0])

    builtins.__import__ = imported
    try:
        yield
    finally:
        builtins.__import__ = own


def guarded_lines(text: str) -> set[int]:
    """Return the numbers of the lines in the bodies of ``try`` statements with an ``except``."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        tries = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Try) and n.handlers]
        return {line for n in tries for s in n.body for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    return set()

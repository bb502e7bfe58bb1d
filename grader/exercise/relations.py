"""The call or calls that one check judges."""

from __future__ import annotations

from typing import Any

from grader import declared
from grader.declared import AuthorError
from grader.exercise.declarations import Call, Cases


def related(call: Any, every_mesh: bool) -> tuple[Call | Cases, ...]:
    """Return the calls in the first argument of ``exercise.check``.

    Raises AuthorError if the argument is not a call, or if the calls cannot be judged together.
    """
    if isinstance(call, Cases):
        if every_mesh:
            raise AuthorError(
                f"every_mesh is for calls on meshes; {call.task.name} is plain Python, so leave every_mesh out"
            )
        return (call,)
    if not isinstance(call, Call | list | tuple) or not call:
        raise AuthorError(
            f"exercise.check is given {declared.a(call)}, not the result of exercise.call or exercise.cases"
        )
    calls = declared.kinds("a check", call, Call, "what exercise.call returned")
    if len(set(map(id, calls))) < len(calls):
        raise AuthorError(f"a check names the same call of {calls[0].task.name} twice: name each call once")
    for other in calls[1:]:
        same_modes = len(other.task.modes) == len(calls[0].task.modes)
        if other.meshes != calls[0].meshes or not same_modes:
            what = "meshes" if same_modes else "check_vma"
            raise AuthorError(
                f"a check of {calls[0].task.name} and {other.task.name} needs the same {what} for both calls"
            )
    if every_mesh and len(calls[0].meshes) < 2:
        raise AuthorError(
            f"every_mesh compares meshes, but {calls[0].task.name} is called on one mesh: name at least two meshes"
        )
    return calls

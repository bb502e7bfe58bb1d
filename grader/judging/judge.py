"""Judge checks: turn the values and facts from a submission's run into a result for each check.

An *ask* is one request to a submission. A *finding* is what the grader makes of the reply to an ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from grader.common.drawing import drawn, each_drawn
from grader.common.layout import show_device
from grader.common.observation import Fault, NotHere, Seen, Sharded
from grader.common.pipelines import pipelines
from grader.common.result import Result
from grader.common.routes import routes
from grader.exercise import Call, Check, Exercise
from grader.expect import Failure, laid_out, show_value
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, by_compiler, paired, seen_of

# These texts must not depend on the hidden inputs or on their results.
WRONG_ON_HIDDEN = (
    "right on all public inputs, but on hidden inputs wrong or not finished: "
    "look for code that fits only the public inputs, or that takes too long"
)
BROKEN_ON_HIDDEN = "the grader failed on hidden inputs; this check needs review"
MAX_SPANS = 1000  # A report shows no timeline with more bars than this.
MAX_ROUTES = 2  # A report shows at most this many routes, and this many pipelines; ``explain`` shows all.
DRAWN_ONCE = ("timeline", "rounds", "ticks")
MAX_HELD = 600  # a report shows no route or pipeline with more entries (devices times rounds) than this


def judge_checks(exercise: Exercise, answered: list[AskFinding], *, public: bool) -> list[Result]:
    """Return a result for every check, in the exercise's order. If ``public``, leave out checks that are not public."""
    results: dict[str, Result] = {}
    answered = paired([by_compiler(a) for a in answered])
    for check in exercise.checks.values():
        if public and not check.public:
            continue
        before = [results[name] for name in check.after if name in results]
        results[check.name] = _blocked(check, before) or judge_check(check, answered, learners_run=public)
    return _drawn_once(results.values())


def _drawn_once(results: Iterable[Result]) -> list[Result]:
    """Return the results, but leave out a picture of a timeline, route or pipeline if an earlier result has it."""
    repeated: list[dict[str, Any]] = []
    found = []
    for result in results:
        left = [picture for picture in result.pictures if picture not in repeated]
        repeated += [picture for picture in left if not picture.keys().isdisjoint(DRAWN_ONCE)]
        found.append(result if left == result.pictures else result.model_copy(update={"pictures": left}))
    return found


def _blocked(check: Check, before: list[Result]) -> Result | None:
    for result in before:
        if result.unjudged:  # the earlier check passed on simulated devices, so checks that depend on it are judged
            continue
        if result.status == "broken":
            return _result(check, "broken", f"waits for the check {result.name!r}, which the grader could not judge")
        if result.status != "passed":
            return _result(check, "blocked", f"not tried: first make {result.label!r} pass")
    return None


@dataclass(frozen=True)
class Together:
    """Asks (requests to the submission), with their findings, that a check's function gets together.

    The function runs once for each set of inputs of the asks. There is one ask for each call of the check. If the check
    compares meshes, there is one ask for each call and mesh.
    """

    check: Check
    by_call: tuple[tuple[AskFinding, ...], ...]

    @property
    def each(self) -> list[AskFinding]:
        return [answer for of_call in self.by_call for answer in of_call]

    @property
    def ask(self) -> Ask:
        """The first ask (request). All asks of the group have equal ``hidden_inputs`` and ``hidden_sizes``."""
        return self.by_call[0][0].ask

    def run_check(self, seen: tuple[Any, ...]) -> None:
        """Run the check on ``seen``, without NumPy's warnings about the learner's values. Raises Failure."""
        with np.errstate(all="ignore"):
            self.check.fn(*seen)

    def seen(self, *, learners_run: bool, on_devices: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of the check's function: one tuple for each set of inputs."""
        # For each call of the check: an iterator over the sets of inputs, with a ``Seen`` for each mesh.
        of_calls = [
            zip(*(seen_of(one, learners_run=learners_run, on_devices=on_devices) for one in of_call), strict=True)
            for of_call in self.by_call
        ]
        for of_set in zip(*of_calls, strict=True):
            # Without ``every_mesh``, a call has only one mesh in this group.
            yield tuple(list(on_meshes) if self.check.every_mesh else on_meshes[0] for on_meshes in of_set)


def together(check: Check, answered: list[AskFinding]) -> list[Together]:
    """Return the groups of asks (requests to the submission) that a check's function gets, in the order of the asks.

    In a group, all asks have equal settings, such as the mesh (see ``Ask.group_key``). If the submission got no ask for
    one of the check's calls, for example because learners cannot try this call, the result is [].
    """
    if len(check.calls) == 1 and not check.every_mesh:
        return [Together(check, ((answer,),)) for answer in answered if answer.ask.of is check.call]
    found: dict[tuple, dict[int, list[AskFinding]]] = {}
    calls = {id(call) for call in check.calls}
    for answer in (a for a in answered if id(a.ask.of) in calls):
        found.setdefault(answer.ask.group_key(check.every_mesh), {}).setdefault(id(answer.ask.of), []).append(answer)
    complete = [of for of in found.values() if len(of) == len(calls)]
    return [Together(check, tuple(tuple(of[id(call)]) for call in check.calls)) for of in complete]


def judge_check(check: Check, answered: list[AskFinding], *, learners_run: bool) -> Result:
    """Judge one check on all meshes and inputs: first on inputs that are not hidden.

    ``learners_run``: see ``seen_of``.
    """
    groups = together(check, answered)
    if not groups:
        return _result(check, "broken", "the grader has no program to run for this check")
    shown, hidden = ([t for t in groups if t.ask.hidden_inputs == secret] for secret in (False, True))
    return (
        _verdict(check, shown, learners_run=learners_run)
        or _hidden_verdict(check, hidden)
        or _verdict_on_devices(check, groups, learners_run=learners_run)
        or _result(check, "passed")
    )


def _verdict(check: Check, groups: list[Together], *, learners_run: bool) -> Result | None:
    """Return the first fault or failure on inputs that are not hidden, with full details; None if all pass."""
    every = [answer for group in groups for answer in group.each]
    if (fault := _fault_verdict(check, every)) is not None:
        return fault
    for group in groups:
        for seen in group.seen(learners_run=learners_run):
            try:
                group.run_check(seen)
            except Failure as failure:
                return _failed(check, failure, group)
            except Exception as error:  # an author's mistake must not cost a learner points
                return _result(check, "broken", _itself_failed(error))
    return None


def _fault_verdict(check: Check, answers: list[AskFinding]) -> Result | None:
    """Return the verdict on the first fault, or None. Faults of the learner come before faults of the grader."""
    faults = [(a.ask, a.finding.fault) for a in answers if a.finding.fault]
    for ask, fault in sorted(faults, key=lambda f: f[1].kind == "broken"):
        why = _of_fault(fault, ask.task)
        if not all(a.finding.fault for a in answers if a.ask.of is ask.of):
            why = _where(why, ask)
        status = "broken" if fault.kind == "broken" else "failed"
        return _result(check, status, why, where=f"line {fault.line}" if fault.line else "")
    return None


def _hidden_verdict(check: Check, groups: list[Together]) -> Result | None:
    """Return a result without details if the check fails on hidden inputs, else None."""
    kinds = {a.finding.fault.kind for group in groups for a in group.each if a.finding.fault}
    if kinds:
        return _result(check, *(("broken", BROKEN_ON_HIDDEN) if kinds == {"broken"} else ("failed", WRONG_ON_HIDDEN)))
    for group in groups:
        for seen in group.seen(learners_run=False):
            try:
                group.run_check(seen)
            except Failure:
                return _result(check, "failed", WRONG_ON_HIDDEN)
            except Exception:
                return _result(check, "broken", BROKEN_ON_HIDDEN)
    return None


def _verdict_on_devices(check: Check, groups: list[Together], *, learners_run: bool) -> Result | None:
    """Judge a check on the values from real devices, after the check passed on simulated devices.

    If the check fails on hidden inputs, the result gives no details. If the real devices computed no values, the result
    is ``blocked``. Return None if the check passes, or if no real devices were requested.
    """
    unseen = ""
    for group in groups:
        try:
            failure = _failure_on_devices(group, learners_run=learners_run)
        except NotHere as why:
            unseen = unseen or str(why)
            continue
        except Exception as error:
            text = f"the check failed on real devices: {type(error).__name__}: {error}"
            return _result(check, "broken", BROKEN_ON_HIDDEN if group.ask.hidden_inputs else text)
        if failure is not None and group.ask.hidden_inputs:
            return _result(check, "failed", WRONG_ON_HIDDEN)
        if failure is not None:
            failed = _failed(check, failure, group)
            reason = f"right on simulated devices, wrong on real ones: {failed.reason}"
            return failed.model_copy(update={"reason": reason})
    return (
        _result(check, "blocked", f"{unseen}; the check passes on simulated devices", unjudged=True) if unseen else None
    )


def _failure_on_devices(group: Together, *, learners_run: bool) -> Failure | None:
    """Return a check's first failure on real devices; None if the check passes at one of the tried matmul precisions.

    The devices' default precision may be too coarse, for example if a relu follows a sum near 0. So a check may also
    pass with float32 matmuls.
    """
    first = None
    observations = [a.finding.observation for a in group.each if a.finding.observation]
    precisions = max((len(one.on_devices or ()) for one in observations), default=0)
    for precision in range(precisions):
        try:
            for seen in group.seen(learners_run=learners_run, on_devices=precision):
                group.run_check(seen)
            return None
        except Failure as failure:
            first = first or failure
    return first


def verdicts(group: Together) -> list[str]:
    """Return, for the staff, why the check fails on each set of inputs, also hidden ones; '' if it passes.

    If a finding is a fault, return only a text about the first fault.
    """
    faults = [(a.ask, a.finding.fault) for a in group.each if a.finding.fault]
    if faults:
        return [f"{fault.kind}: {_of_fault(fault, ask.task)}" for ask, fault in faults[:1]]
    decided = []
    for seen in group.seen(learners_run=False):
        try:
            group.run_check(seen)
            decided.append("")
        except Failure as failure:
            decided.append(failure.staff or failure.reason)
        except Exception as error:
            decided.append(_itself_failed(error))
    return decided


def _itself_failed(error: Exception) -> str:
    """Return the reason to show if a check's function raised ``error``, because the check has a mistake."""
    text = str(error) or ("compare with a function of grader.expect" if isinstance(error, AssertionError) else "")
    return f"the check itself failed: {type(error).__name__}: {text}"


def _failed(check: Check, failure: Failure, group: Together) -> Result:
    ask = group.ask
    expected, actual = failure.expected, failure.actual
    if isinstance(actual, Sharded):
        actual = expected = None
    if any(failure.values) and check.public and not (ask.hidden_sizes or ask.hidden_inputs):
        expected, actual = failure.values
    reason = _where(failure.reason, ask, check.every_mesh)
    return _result(
        check,
        "failed",
        reason,
        where=failure.where,
        staff=failure.staff,
        expected=_plain(expected),
        actual=_plain(actual),
        unit=failure.unit,
        pictures=_pictures(check, failure, group),
    )


def _pictures(check: Check, failure: Failure, group: Together) -> list[dict[str, Any]]:
    marked = zip(("actual", "expected"), failure.layouts, (failure.wrong, ()), strict=False)
    pictures = each_drawn(_picture, marked)
    if check.public:
        pictures += each_drawn(_timeline_picture, group.each)
    if not failure.layouts:
        nothing: list[dict[str, Any]] = []
        pictures += next((found for answer in group.each if (found := drawn(nothing, _rounds_pictures, answer))), [])
    return pictures


def _picture(about: tuple[str, tuple, Sequence[int]]) -> dict[str, Any]:
    title, (mesh, shape, slices), wrong = about
    marks = {"wrong": list(wrong)} if wrong else {}
    return marks | {
        "title": title,
        "mesh": [[a, n] for a, n in mesh.items()],
        "shape": list(shape),
        "slices": [[list(p) for p in s] for s in slices],
    }


def _timeline_picture(answer: AskFinding) -> dict[str, Any] | None:
    """Return a picture of a timed program's timeline.

    Return None if there is no timeline, if it is too long, or if learners do not see the program's sizes.
    """
    ask, observation = answer.ask, answer.finding.observation
    if not (isinstance(ask.of, Call) and ask.of.timing and observation) or ask.hidden_sizes or ask.hidden_inputs:
        return None
    try:
        timeline = laid_out(observation.operations, ask.of.timing)
    except Failure:
        return None
    if len(timeline.spans) > MAX_SPANS:
        return None
    sent = sum(of_axes.most for of_axes in Seen(ask.mesh, collectives=observation.collectives).traffic.values())
    known = {"sent": sent} if sent < math.inf else {}
    return {"title": "actual timeline", "timeline": _plain(asdict(timeline))} | known


def _rounds_pictures(answer: AskFinding) -> list[dict[str, Any]]:
    """Return pictures of the program's short routes and pipelines (chains of permutes), at most MAX_ROUTES of each.

    Return [] if the program ran on hidden dimensions or hidden inputs.
    """
    ask, observation = answer.ask, answer.finding.observation
    if ask.hidden_sizes or ask.hidden_inputs or observation is None or observation.operations is None:
        return []
    mesh = [[axis, size] for axis, size in ask.mesh.items()]
    found = [j for j in routes(observation.operations) if sum(map(len, j.holds)) <= MAX_HELD]
    about = ask.for_runner([])
    names = [argument["name"] for argument in (*about["args"], *about["cotangents"])]
    lines = [p for p in pipelines(observation.operations, names) if sum(map(len, p.ticks)) <= MAX_HELD]
    shown = [("rounds", route) for route in found[:MAX_ROUTES]] + [("ticks", p) for p in lines[:MAX_ROUTES]]
    return [{"title": f"actual {kind}", "mesh": mesh, kind: _plain(asdict(one))} for kind, one in shown]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return show_value(value)


def _where(text: str, ask: Ask, every_mesh: bool = False) -> str:
    """Put the mesh and the value of ``check_vma`` before a message, if the call has several meshes or values.

    If the check gets all meshes together (``every_mesh``), the mesh is left out.
    """
    if isinstance(ask.of, Call):
        if len(ask.of.meshes) > 1 and not every_mesh:
            text = f"on the mesh {show_device(ask.mesh)}, {text}"
        if len(ask.of.task.modes) > 1:
            text = f"with check_vma={ask.check_vma}, {text}"
    return text


def _of_fault(fault: Fault, task: str) -> str:
    place = f"line {fault.line}" if fault.line else ""
    if fault.file.startswith("cell"):  # students know the name of a .py file, but not the number of a cell
        place = f"{fault.file}, {place}" if place else fault.file
    text = fault.message if fault.message.startswith(task) else f"{task}: {fault.message}"
    return f"{place}: {text}" if place else text


def _result(check: Check, status: Any, reason: str = "", **more: Any) -> Result:
    earned = check.points if status == "passed" else 0
    return Result(
        kind="check", name=check.name, label=check.label, task=check.call.task.name, status=status,
        points=check.points, earned=earned, public=check.public, reason=reason, **more,
    )  # fmt: skip

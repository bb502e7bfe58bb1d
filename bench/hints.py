"""Measure hints: how many wrong programs get the right hint, none, or a wrong one.

    python bench/hints.py                      the whole corpus
    python bench/hints.py f1 j2 --written      some exercises, and only the programs in bench/wrong

There are two sources of programs. ``bench/wrong`` holds programs and answers to questions that people wrote or could
have written, each with its misconceptions. The course's own misconceptions are rewritten in other styles (see ``rewriting``). A program counts as
*right* if each of its hints belongs to one of its misconceptions, and as *wrong* if some hint does not.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.rewriting import styles
from grader.authoring.tries import tried
from grader.batch.grade import Grader
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.exercise import Exercise, Task
from grader.judging.answers import judge_answer, kind_of, show_params, some_variants, wanted
from grader.judging.judge import judge_checks
from grader.judging.seen import AskFinding
from grader.sandbox.tiers import best_tier

WRONG = Path(__file__).resolve().parent / "wrong"
STYLES_EACH = 3
OF_EACH_EXERCISE = 2  # number of misconceptions of each exercise that the script rewrites
OF_EACH_QUESTION = 12  # number of draws of a question's parameters
GUESSED = re.compile("unit is not|power of 1000|mixed up")  # in reasons that name a mistake in the unit
AT_ONCE = 12


@dataclass(frozen=True)
class Case:
    """A wrong program or answer. ``is_`` has the names of its known misconceptions, and may be empty."""

    exercise: str
    task: str
    name: str
    text: str
    is_: frozenset[str]


def written(course: Course, names: Iterable[str]) -> Iterator[Case]:
    """Yield the programs in ``bench/wrong``: functions with a docstring ``task: misconception, misconception``.

    If the docstring has a name that no misconception has, the program has a mistake without a hint. Functions with a
    docstring ``question: misconception`` return wrong answers and are left out here, see ``answered``.
    """
    for path in sorted(WRONG.glob("*.py")):
        if path.stem not in names:
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        cases = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and ":" in (ast.get_docstring(n) or "")}
        given = (path.stem, "grader.hardware")  # programs may not import ``grader.hardware``; only answers use it
        ours = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and n.module in given)]
        shared = [ast.unparse(n) for n in ours if getattr(n, "name", "") not in cases]
        base = reference_source(course.exercise(path.stem), {})
        for name, node in cases.items():
            task, labels = (ast.get_docstring(node) or "").split("\n")[0].split(":")
            if task.strip() in course.exercise(path.stem).questions:
                continue
            node.name, node.body = task.strip(), node.body[1:]
            body = "\n\n".join([base, *shared, ast.unparse(node)])
            is_ = labelled(labels)
            yield Case(path.stem, task.strip(), name, body + "\n", is_)


def labelled(labels: str) -> frozenset[str]:
    """Return the names of misconceptions in the part of a docstring after the colon, without "none"."""
    return frozenset(one.strip() for one in labels.split(",")) - {"none", ""}


def answered(exercise: Exercise) -> Iterator[tuple[Case, dict]]:
    """Yield a case for each function in ``bench/wrong`` that returns wrong answers, with the judge's verdicts.

    The function takes the question's parameters. For some draws of the parameters, the judge judges the function's
    value. The verdicts have, for each draw with a failed answer, the misconception and the reason.
    """
    path = WRONG / f"{exercise.id}.py"
    tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    own = [n for n in tree.body if not (isinstance(n, ast.ImportFrom) and n.module == exercise.id)]
    space: dict = {}
    exec(compile(ast.Module(own, []), str(path), "exec"), space)
    for node in own:
        if not isinstance(node, ast.FunctionDef):
            continue
        task, _, labels = (ast.get_docstring(node) or "").partition(":")
        if (question := exercise.questions.get(task.strip())) is None:
            continue
        found = {}
        for params in some_variants(question, OF_EACH_QUESTION):
            kind = kind_of(question, params)
            raw = kind.written(wanted(question, space[node.name], params, kind))
            result = judge_answer(question, params, exercise.misconceptions.values(), raw)
            if result.status == "failed":
                guess = "a unit" if not result.misconception and GUESSED.search(result.reason) else ""
                found[show_params(params)] = result.misconception or guess, result.reason
        yield Case(exercise.id, task, node.name, "", labelled(labels)), found


def rewritten(exercise: Exercise) -> Iterator[Case]:
    """Rewrite some of the tasks' misconceptions in other styles, and yield them. Every run rewrites the same ones."""
    known = [m for m in exercise.misconceptions.values() if isinstance(m.of, Task)]
    random.Random(exercise.id).shuffle(known)
    for misconception in known[:OF_EACH_EXERCISE]:
        task = misconception.of
        assert isinstance(task, Task)
        found = styles(reference_source(exercise, {}, misconception), task.name, plain=task.kind == "function")
        for style, text in sorted(found.items())[:STYLES_EACH]:
            yield Case(
                exercise.id, task.name, f"{misconception.name} ({style})", text, frozenset({misconception.known_as})
            )


def own(exercise: Exercise, tasks: set[str]) -> Iterator[Case]:
    """Yield the misconceptions of the given tasks, unchanged."""
    for misconception in exercise.misconceptions.values():
        if misconception.of.name in tasks:
            yield Case(
                exercise.id,
                misconception.of.name,
                f"{misconception.name} (own)",
                reference_source(exercise, {}, misconception),
                frozenset({misconception.known_as}),
            )


class Findings:
    """A cache of programs' findings on public inputs, so that each program runs only once."""

    def __init__(self, grader: Grader) -> None:
        self.grader = grader
        self.known: dict[tuple[str, str], list[AskFinding]] = {}

    def of(self, exercise: Exercise, texts: list[tuple[str, str]]) -> list[list[AskFinding]]:
        """Return, for each pair (source code, task), the answers to all requests of the task."""
        asks = [a for a in self.grader.plan(exercise.id, False) if not a.hidden_inputs]
        left = [one for one in dict.fromkeys(texts) if one not in self.known]
        for start in range(0, len(left), AT_ONCE):
            some = [(text, [a for a in asks if a.task == task]) for text, task in left[start : start + AT_ONCE]]
            for n, answered in enumerate(tried(self.grader, some)):
                self.known[left[start + n]] = answered or tried(self.grader, [some[n]])[0]
        return [self.known[one] for one in texts]


def hints_of(grader: Grader, exercise: Exercise, cases: list[Case]) -> Iterator[tuple[Case, dict]]:
    """Yield each case with a dictionary: for each check that the case fails, the hint ('' for none) and the reason."""
    findings = Findings(grader)
    right = {}
    names = list(exercise.tasks)
    solution = reference_source(exercise, {})
    for task, answered in zip(names, findings.of(exercise, [(solution, t) for t in names]), strict=True):
        right[task] = answered
    judged = []
    for case, answered in zip(cases, findings.of(exercise, [(c.text, c.task) for c in cases]), strict=True):
        whole = answered + [a for task, of in right.items() if task != case.task for a in of]
        if answered:
            judged.append((case, whole, judge_checks(exercise, whole, public=False)))
    failed = {(case.task, r.name) for case, _, results in judged for r in results if r.status == "failed"}
    known = [
        m for m in exercise.misconceptions.values() if any((getattr(m.of, "name", ""), f) in failed for f in m.fails)
    ]
    texts = [(reference_source(exercise, {}, misconception), misconception.of.name) for misconception in known]
    for misconception, answered in zip(known, findings.of(exercise, texts), strict=True):
        grader.references.learn(exercise, misconception, answered)
    with grader.pool.lent() as workers:
        for case, whole, results in judged:
            hinted = grader.judge.with_hints(exercise, results, whole, workers, False)
            yield case, {r.name: (r.misconception or "", r.reason) for r in hinted if r.status == "failed"}


def verdict(case: Case, found: dict) -> str:
    """Return whether the hints for a wrong program are right.

    Returns:
        "right", "wrong", "none" (no hint), or "silent" (no hint, and no known misconception); "" if no check fails,
        because rewriting the program made it right.
    """
    given = {name for hint, _ in found.values() for name in hint.split(" or ") if name}
    if not found:
        return ""
    if given - case.is_ and not (given & case.is_ and any(" or " in hint for hint, _ in found.values())):
        return "wrong"
    return "right" if given else "none" if case.is_ else "silent"


def printed(case: Case, what: str, found: dict) -> None:
    """Print a case, and the hint and the reason for each check or draw that the case fails."""
    print(f"  {what or 'passed':6} {case.exercise} {case.name}, is {', '.join(sorted(case.is_)) or 'nothing known'}")
    for (hint, reason), checks in itertools.groupby(found.items(), key=lambda one: one[1]):
        print(f"         {next(checks)[0]}: {hint or '-'}: {reason[:230]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--written", action="store_true", help="only the programs and answers in bench/wrong")
    parser.add_argument("--answers", action="store_true", help="only the answers in bench/wrong, which run no program")
    parser.add_argument("--all", action="store_true", help="say of each program what it gets")
    options = parser.parse_args()
    course = find_course(Path(__file__).resolve().parent.parent)
    names = [n for n in course.module_of if not options.exercises or n.split("_")[0] in options.exercises]
    total: dict[str, Counter] = {"written": Counter(), "answers": Counter(), "rewritten": Counter(), "own": Counter()}
    with Grader(course, best_tier()) as grader:
        for name in names:
            exercise, count = course.exercise(name), Counter()
            for source, case, found in measured(grader, exercise, options):
                what = verdict(case, found)
                count[what or "passed"] += 1
                total[source][what or "passed"] += 1
                if what in ("wrong", "none") or (source in ("written", "answers") and not what) or options.all:
                    printed(case, what, found)
            if count:
                print(f"{name}: {dict(count)}", flush=True)
    for source, count in total.items():
        known = count["right"] + count["none"] + count["wrong"]
        shares = ", ".join(
            f"{what} {count[what]} ({count[what] / max(known, 1):.1%})" for what in ("right", "none", "wrong")
        )
        print(f"{source}: {shares}; {count['silent']} unknown mistakes without a hint, {count['passed']} passed")


def measured(grader: Grader, exercise: Exercise, options: argparse.Namespace) -> Iterator[tuple[str, Case, dict]]:
    """Yield (source, case, found) for each case of an exercise.

    The source is "answers", "written", "rewritten" or "own"; found is the result of ``hints_of`` or ``answered``.
    """
    for case, found in answered(exercise):
        yield "answers", case, found
    if options.answers:
        return
    by_hand = list(written(grader.course, [exercise.id]))
    cases = [("written", case) for case in by_hand]
    if not options.written:
        cases += [("rewritten", case) for case in rewritten(exercise)]
        cases += [("own", case) for case in own(exercise, {case.task for _, case in cases})]
    source = {id(case): which for which, case in cases}
    for case, found in hints_of(grader, exercise, [case for _, case in cases]) if cases else ():
        yield source[id(case)], case, found


if __name__ == "__main__":
    main()

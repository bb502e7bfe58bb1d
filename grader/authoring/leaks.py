"""Find solution lines and other secrets in the files that learners get."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from grader.authoring.learners_texts import Text, learners_texts
from grader.authoring.shown_keys import ASCII, shown_formulas, shown_values
from grader.common import syntax
from grader.course.loading import Course
from grader.course.statements import Statement, copied, statements
from grader.exercise import Exercise, Question, Task

LEAST_LINE = 16  # The shortest line to search for, in characters. Shorter lines may occur in any file.
IDIOM = 3  # A line in at least this many exercises is an idiom, which reveals nothing about a solution.
LEAST_OPERATORS = 2
NAMES_ALONE = re.compile(r"[\w\s,]*")  # a line with only names, such as arguments, reveals nothing about a solution
READ = ast.Name | ast.Attribute | ast.Subscript | ast.Constant | ast.expr_context
"""Syntax nodes of an expression that looks up a value and computes nothing, such as ``mesh.shape["x"]``."""
EXPRESSION = re.compile(r"\{\{\s*[A-Za-z_][^{}]*\}\}|\{%[^{}]*%\}")
"""A statement or an expression of a template. The groups {{0,1},{2,3}} of a compiled program do not match."""
MEND = "learners read this line, so leave it out or move it to the last hint"
SIGNS = ASCII | str.maketrans("'", '"')


def leaks(course: Course, made: dict[str, str], names: Iterable[str] | None = None) -> Iterator[str]:
    """Yield a problem for each hidden line, part of a solution, or seed of the course in learners' files.

    Args:
        made: the text of each file that learners get, by path.
        names: the exercises whose texts are searched for their solutions and answers; None for all. Every file is
            searched for every hidden line and for the seed, whatever the names are.
    """
    hidden = dict(hidden_lines(course))
    for path, text in made.items():
        for line in text.splitlines():
            found = hidden.get(normal_form(line))
            if found:
                yield f"exercises/{path} holds a line of {found}: {line.strip()[:80]}"
    seed = course.config.seed
    for path, text in made.items():
        if len(seed) > 3 and seed in text:
            yield f"exercises/{path} holds the course's seed"
    texts = learners_texts(course, made, course.module_of if names is None else names)
    yield from leaked_solutions(course, texts)
    for name, some in texts.items():
        exercise = course.exercise(name)
        yield from (f"{name}: {problem}" for problem in _templates(exercise, some))


def leaked_solutions(course: Course, texts: Mapping[str, Sequence[Text]]) -> Iterator[str]:
    """Yield a problem for each solution line and each right answer that a text for learners shows.

    The last hint of a task or question is not searched, because it may show the solution.

    Args:
        texts: the texts that learners get, by exercise.
    """
    exercises = [course.exercise(name) for name in texts]
    used = Counter(line for exercise in exercises for line in _all_lines(exercise))
    for exercise in exercises:
        last = {hint for asked in _asked(exercise) for hint in asked.hints[-1:]}
        searched = [one for one in texts[exercise.id] if one.text not in last]
        found: dict[str, str] = {}
        for place, what, shown in [*_copied(exercise, used, searched), *_keys(exercise, searched)]:
            found.setdefault(what, f"{exercise.id}: {place} shows {what}: {shown.strip()[:80]}; {MEND}")
        yield from found.values()


def _asked(exercise: Exercise) -> list[Task | Question]:
    return [*exercise.tasks.values(), *exercise.questions.values()]


def _copied(exercise: Exercise, used: Mapping[str, int], texts: Iterable[Text]) -> Iterator[tuple[str, str, str]]:
    """Yield (place, description, code) for each solution line or formula in a prose text."""
    solution = [(what, text, _folded(text)) for what, text in _solution(exercise, used)]
    for one in texts:
        folded = "" if one.is_code else _folded(one.text)
        for what, text, line in solution:
            if line in folded and re.search(rf"(?<![\w.*/]){re.escape(line)}(?![\w*/(\[])", folded):
                yield one.place, what, text


def _keys(exercise: Exercise, texts: Sequence[Text]) -> Iterator[tuple[str, str, str]]:
    for question in exercise.questions.values():
        for place, shown in [*shown_formulas(question, texts), *shown_values(question, texts)]:
            yield place, f"the answer of {question.name}", shown


def _templates(exercise: Exercise, texts: Iterable[Text]) -> Iterator[str]:
    """Yield a problem for each text with a {{ NAME }} that no value replaces: learners would read the braces."""
    filled = {f"the docstring of {name}" for name in exercise.questions}
    filled |= {f"{word}= of {name}" for name in exercise.questions for word in ("options", "items")}
    shown = {one.place: found[0] for one in texts if (found := EXPRESSION.search(one.text)) and one.place not in filled}
    for place, braces in shown.items():
        if not place.endswith((".ipynb", "a comment")):
            yield f"{place} has {braces}, which learners read as it is: use braces only in questions' texts and options"


def _solution(exercise: Exercise, used: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield (description, code) for each line of the solution's functions, and for each formula that is an answer."""
    for part in statements(exercise, grading=False):
        if part.kind in ("task", "question", "private"):
            for line in _hidden(part, set()):
                if _reveals(line, used) and not NAMES_ALONE.fullmatch(line):
                    yield f"a line of {part.name}", line.split("  #")[0]
        if part.kind == "question":
            yield from ((f"the answer of {part.name}", formula) for formula in _formulas(part))


def _formulas(part: Statement) -> Iterator[str]:
    """Yield the expressions that a question's function returns, if they have at least LEAST_OPERATORS operators."""
    for node in ast.walk(part.node):
        if isinstance(node, ast.Return) and node.value is not None:
            operators = sum(isinstance(inner, ast.BinOp) for inner in ast.walk(node.value))
            if operators >= LEAST_OPERATORS:
                yield copied(part, node.value)


def _folded(text: str) -> str:
    """Return the text in a form for comparisons: ASCII operators and quotes, and white space only between words."""
    text = " ".join(text.translate(SIGNS).split())
    return re.sub(r" ?([-+*/%()\[\]{},=<>@:]) ?| (?=\.)", r"\1", text)


def hidden_lines(course: Course) -> Iterator[tuple[str, str]]:
    """Yield (line, owner) for lines of solutions, hidden checks, hidden cases, answers and misconceptions.

    Lines that reveal nothing are skipped: lines that learners get on purpose, short lines, lines that occur in three
    exercises or more, and lines that only name a part of a value, such as ``n = mesh.shape["x"]``.
    """
    exercises = [course.exercise(name) for name in course.usable(course.module_of)[0]]
    used = Counter(line for exercise in exercises for line in _all_lines(exercise))
    shown = {normal_form(line) for e in exercises for line in _public_checks(e)}
    for exercise in exercises:
        parts = statements(exercise, grading=True)
        public = {c.name for c in exercise.checks.values() if c.public}
        shown_lines = shown | _shown_lines(exercise, parts, public)
        for part in parts:
            for line in _hidden(part, public):
                if _reveals(line, used) and normal_form(line) not in shown_lines:
                    yield normal_form(line), f"{exercise.id}/{part.name}"


def _reveals(line: str, used: Mapping[str, int]) -> bool:
    normal = normal_form(line)
    return len(normal) >= LEAST_LINE and used[normal] < IDIOM and not _only_reads(line)


def _only_reads(line: str) -> bool:
    """Return True if a line only gives a name to a part of a value, as in ``n = mesh.shape["x"]``."""
    with suppress(SyntaxError):
        match syntax.parse(line.strip()).body:
            case [ast.Assign(value=ast.Attribute() | ast.Subscript() as value)]:
                return all(isinstance(node, READ) for node in ast.walk(value))
    return False


def _all_lines(exercise: Exercise) -> set[str]:
    return {normal_form(line) for line in f"{exercise.source}\n{exercise.grading_source}".splitlines()}


def _shown_lines(exercise: Exercise, parts: Sequence[Statement], public: set[str]) -> set[str]:
    given = {normal_form(line) for part in parts for line in _given(part, public).splitlines()}
    return given | {normal_form(hint) for task in exercise.tasks.values() for hint in task.hints}


def _public_checks(exercise: Exercise) -> list[str]:
    """Return the lines of public checks. A hidden check's line is not secret if a public check also has it."""
    public = {c.name for c in exercise.checks.values() if c.public}
    return [line for p in statements(exercise, grading=True) if p.name in public for line in p.text.splitlines()]


def normal_form(line: str) -> str:
    """Return a line without white space and comment, so that lines with different formatting compare equal."""
    return "".join(line.split("  #")[0].split())


def _given(part: Statement, public: set[str]) -> str:
    """Return the lines of a top-level statement that learners get; '' for none."""
    if part.kind in ("given", "helper", "import", "exercise", "doc") or part.name in public:
        return part.text
    if part.kind in ("task", "question") and isinstance(part.node, ast.FunctionDef):
        node = part.node
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        body = node.body[0].end_lineno or node.lineno
        return "\n".join(part.text.splitlines()[: body - first + 1])
    return ""


def _hidden(part: Statement, public: set[str]) -> list[str]:
    """Return the lines in the bodies of solutions, answers, misconceptions, hidden checks and private functions."""
    if not isinstance(part.node, ast.FunctionDef) or part.kind in ("given", "helper") or part.name in public:
        return []
    lines = part.text.splitlines()
    first = min([part.node.lineno, *(d.lineno for d in part.node.decorator_list)])
    start = part.node.body[0]
    skip = (
        (start.end_lineno or 0)
        if ast.get_docstring(part.node) and part.kind in ("task", "question")
        else part.node.lineno
    )
    return lines[skip - first + 1 :]

"""Find the texts that learners get: in the files that ``build`` makes, and in reports.

The module reads the built files, not the author's declarations. So it needs no change if ``build`` writes another kind
of text into the files.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from grader.common import syntax
from grader.course.config import PUBLIC
from grader.course.loading import Course
from grader.exercise import Exercise


class Text(NamedTuple):
    """A text that learners get. ``place`` tells the author where the text is. ``is_code`` is False for prose."""

    place: str
    text: str
    is_code: bool = False


def learners_texts(course: Course, made: Mapping[str, str], names: Iterable[str]) -> dict[str, list[Text]]:
    """Return the texts that learners get, by exercise. Each text of an exercise occurs once.

    Args:
        made: the files that learners get, by path.
        names: the exercises. Exercises that cannot be used are left out.
    """
    names = course.usable(names)[0]
    found: dict[str, dict[str, Text]] = {name: {} for name in names}
    # If several texts are equal, keep only the first. Files in ``_public`` come first, because problems in these files
    # are reported with the most precise places.
    for path, text in sorted(made.items(), key=lambda one: PUBLIC not in one[0]):
        for owner, one in _of_file(course, path, text, found):
            found[owner].setdefault(" ".join(one.text.split()), one)
    for name in names:
        for one in _in_reports(course.exercise(name)):
            found[name].setdefault(" ".join(one.text.split()), one)
    return {name: [*texts.values()] for name, texts in found.items()}


def _in_reports(exercise: Exercise) -> Iterator[Text]:
    """Yield the texts that learners read only in reports: labels of checks, and hints of misconceptions."""
    yield from (Text(f"the docstring of {check.name}", check.label) for check in exercise.checks.values())
    for wrong in exercise.misconceptions.values():
        yield Text(f"the docstring of {wrong.name}", wrong.hint)


def _of_file(course: Course, path: str, text: str, names: Container[str]) -> Iterator[tuple[str, Text]]:
    """Yield (exercise, text) for each text of a file that belongs to one of the exercises ``names``.

    A module's file belongs to each exercise of the module.
    """
    place = PurePosixPath(path)
    if place.suffix == ".py" and place.stem in names:
        yield from ((place.stem, one) for one in _of_python(text))
    elif place.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            source, owner = "".join(cell["source"]), cell["id"].partition("-")[0]
            if owner in names:
                pieces = _of_python(source) if cell["cell_type"] == "code" else [Text(place.name, source)]
                yield from ((owner, one) for one in pieces)
    elif module := next((m for m in course.config.modules if m.id == place.parent.name), None):
        yield from ((name, Text(f"{module.id}/{place.name}", text)) for name in module.exercises if name in names)


def _of_python(source: str) -> Iterator[Text]:
    """Yield the strings, the comments and the code of a Python file, each with its place in the file."""
    for node in syntax.parse(source).body:
        parts = list(_parts(node))
        for place, part in parts:
            yield from _strings(place, part)
        yield from (Text(place, _without_strings(part), True) for place, part in parts)
    yield from (Text("a comment", text) for text in _comments(source))


def _parts(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield (place, syntax node) for each part of a top-level statement, such as a function's docstring and body."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            yield "the statement", node
        case ast.FunctionDef(name=name, decorator_list=decorators, body=body):
            for decorator in decorators:
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                yield from ((f"{keyword.arg}= of {name}", keyword.value) for keyword in keywords)
            if ast.get_docstring(node) is not None:
                yield f"the docstring of {name}", body[0]
                body = body[1:]
            yield f"the code of {name}", ast.Module(body, [])
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield f"the value of {name}", value
        case _:
            yield "the code", node


def _strings(place: str, part: ast.AST) -> Iterator[Text]:
    for node in ast.walk(part):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(place, node.value)


class _Emptied(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


def _without_strings(part: ast.AST) -> str:
    """Return the source of a syntax node without comments, and with "" in place of every string."""
    copied = syntax.parse(ast.unparse(part))
    return ast.unparse(ast.fix_missing_locations(_Emptied().visit(copied)))


def _comments(source: str) -> Iterator[str]:
    """Yield each comment. Consecutive comment lines are one text, because a sentence may fill several lines."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            if not alone or token.start[0] > last + 1:
                yield "\n".join(block)
                block = []
            block.append(token.string.lstrip("#").strip())
            last = token.start[0] if alone else 0
    yield "\n".join(block)

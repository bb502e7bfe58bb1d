"""The texts that learners get, with their places in the author's file."""

from __future__ import annotations

from pathlib import Path

from grader.authoring.leaks import leaks
from grader.authoring.learners_texts import Text, learners_texts
from grader.course.build import usable_products
from tests.made_up import made_up


def texts(folder: Path, was: str = "", becomes: str = "") -> list[Text]:
    course = made_up(folder, was, becomes)
    (folder / "solutions" / "01_gather" / "README.md").write_text("# Module\n\nNotes for all.\n")
    return learners_texts(course, usable_products(course).texts, course.module_of)["x1_gather"]


def test_each_text_comes_with_its_place_in_the_authors_file(tmp_path: Path) -> None:
    found = {one.text.split("\n")[0]: one.place for one in texts(tmp_path)}
    assert found["# X1 Gather"] == "the statement"
    assert found["a nudge"] == "hints= of gather"
    assert found["Gather A[I_X, J] into A[I, J]."] == "the docstring of gather"
    assert found["Given."] == "the docstring of helper"
    assert found["a comment that stays"] == "a comment"
    assert found["return math.prod(a.shape)"] == "the code of helper"
    assert found["# Module"] == "01_gather/README.md"
    assert found["one all-gather"] == "the docstring of traffic"  # a hidden check's label, which reports show
    assert "secret_helper" not in " ".join(one.text for one in texts(tmp_path))


def test_a_text_is_found_in_any_keyword_and_each_text_counts_once(tmp_path: Path) -> None:
    found = texts(tmp_path, "@exercise.number(", '@exercise.number(title="a title", ')
    assert [one.place for one in found if one.text == "a title"] == ["title= of gather_time"]
    every = [" ".join(one.text.split()) for one in found]
    assert len(set(every)) == len(every)


def test_comment_lines_are_joined_and_strings_are_separated_from_code(tmp_path: Path) -> None:
    found = texts(tmp_path, "    return math.prod(a.shape)", '    # two\n    # lines\n    return len("a text")')
    assert Text("a comment", "two\nlines") in found
    assert Text("the code of helper", "return len('')", True) in found
    assert Text("the code of helper", "a text") in found


def test_only_texts_of_the_named_exercises_are_returned(tmp_path: Path) -> None:
    course = made_up(tmp_path, "Say what to do.", 'Write `return jax.lax.all_gather(a, "x", axis=0, tiled=True)`.')
    made = usable_products(course).texts
    assert learners_texts(course, made, []) == {}
    assert [*learners_texts(course, made, ["x1_gather"])] == ["x1_gather"]
    assert any("the statement shows a line" in problem for problem in leaks(course, made, ["x1_gather"]))
    assert not any("the statement shows a line" in problem for problem in leaks(course, made, []))

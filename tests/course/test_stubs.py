"""The files that learners fill in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.course.build import build, products
from grader.course.config import CourseError
from grader.course.exercises import divided
from grader.course.loading import Course, load_course
from grader.course.notebooks import notebook
from grader.course.stubs import TRACED, module_page, question_text, stub_source
from grader.exercise import Exercise
from grader.intake.submission import Chunk, Source, source_digest
from tests.made_up import made_up


def test_a_stub_holds_the_statement_given_code_tasks_and_questions(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = stub_source(course, course.exercise("x1_gather"))
    compile(text, "stub", "exec")
    for line in ("# X1 Gather", "ROWS = 8", "return math.prod(a.shape)  # a comment that stays", "import jax",
                 '"""Gather A[I_X, J] into A[I, J]."""', 'raise NotImplementedError("gather")', "# TODO",
                 "gather_time = None", "ring, bandwidth only"):  # fmt: skip
        assert line in text, line


def test_a_stub_holds_no_solution_check_or_hint(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = stub_source(course, course.exercise("x1_gather"))
    for secret in (
        "secret_helper",
        "all_gather(",
        "zeroed",
        "You returned",
        "1012",
        "expect",
        "grader",
        "all_gather_time",
    ):
        assert secret not in text, secret


def test_a_task_without_a_docstring_is_refused(tmp_path: Path) -> None:
    course = made_up(tmp_path, '    """Gather A[I_X, J] into A[I, J]."""\n', "")
    with pytest.raises(CourseError, match="the task gather has no docstring"):
        stub_source(course, course.exercise("x1_gather"))


def test_files_for_all_learners_hold_no_per_student_numbers(tmp_path: Path) -> None:
    made_up(tmp_path)

    (tmp_path / "course.yaml").write_text(
        (tmp_path / "course.yaml").read_text() + "variants: {mode: per_student, seed: s}\n"
    )
    course = load_course(tmp_path / "course.yaml")
    text = stub_source(course, course.exercise("x1_gather"))
    assert "Your numbers: run `shardlings show gather_time`." in text
    assert "1048576" not in text and "4194304" not in text
    assert "1048576" not in json.dumps(notebook(course, "01_gather"))


def test_a_stub_raises_not_implemented_error(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    space: dict = {}
    exec(stub_source(course, course.exercise("x1_gather")), space)
    with pytest.raises(NotImplementedError, match=r"^gather$"):
        space["gather"](None, mesh=None)
    assert space["gather_time"] is None and space["ROWS"] == 8


FURTHER = "## Going further\n\n**Read on.** See `a/b` and {{ braces }}.\n\n```\n  x0 | x1\n```\n"


def going_further(folder: Path) -> Course:
    return made_up(folder, "Say what to do.\n", f"Say what to do.\n\n{FURTHER}")


def test_the_going_further_section_comes_after_the_code(tmp_path: Path) -> None:
    course = going_further(tmp_path)
    exercise = course.exercise("x1_gather")
    assert exercise.statement == "# X1 Gather\n\nSay what to do."
    before, below = stub_source(course, exercise).split("# TODO: your answer\n")
    assert "Read on" not in before and 'The text "Going further" is below the code.' in before
    assert below == "\n\n" + "".join(f"# {line}".rstrip() + "\n" for line in FURTHER.splitlines())
    cells = json.loads(notebook(course, "01_gather"))["cells"]
    last = cells[-1]
    assert (last["cell_type"], "".join(last["source"])) == ("markdown", FURTHER.strip())
    assert "".join(cells[-2]["source"]) == 'check("x1_gather")'


def test_changes_in_the_going_further_section_leave_the_fingerprint(tmp_path: Path) -> None:
    course = going_further(tmp_path)
    exercise = course.exercise("x1_gather")
    stub = stub_source(course, exercise)
    for other in (stub.replace("Read on", "I read it"), stub[: stub.index("# ## Going further")], stub + "# mine\n"):
        assert other != stub
        assert source_digest(Source("", (Chunk("", other),))) == source_digest(Source("", (Chunk("", stub),)))
    changed = stub.replace('raise NotImplementedError("gather")', "return a")
    assert source_digest(Source("", (Chunk("", changed),))) != source_digest(Source("", (Chunk("", stub),)))


def test_only_a_heading_line_of_its_own_divides_the_statement() -> None:
    text = "# T\n\nSee ## Going further\n\n### Going further\n\n## Going further away"
    assert divided(text) == (text, "")
    assert divided("# T\n## Going further  \nmore\n## Going further\n") == ("# T\n", "\nmore\n## Going further\n")


def test_the_module_page_holds_the_modules_readme_and_rules(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    exercise = course.exercise("x1_gather")
    assert module_page(course, "01_gather") == f"# Gather\n\n{TRACED}"
    assert "README.md, or run shardlings show 01_gather" in stub_source(course, exercise)
    (tmp_path / "solutions" / "01_gather" / "README.md").write_text("# All of Gather\n\nW is bandwidth.\n")
    page = module_page(course, "01_gather")
    assert page == f"# All of Gather\n\nW is bandwidth.\n\n{TRACED}"
    assert products(course)["01_gather/README.md"] == page + "\n"
    intro = json.loads(notebook(course, "01_gather"))["cells"][0]
    assert "".join(intro["source"]).endswith(f"W is bandwidth.\n\n{TRACED}")
    build(course)
    released = load_course(tmp_path / "exercises" / "course.yaml")
    assert module_page(released, "01_gather") == page
    (tmp_path / "solutions" / "01_gather" / "README.md").write_text("no title\n")
    with pytest.raises(CourseError, match=r"README\.md: it must start with '# Title'"):
        module_page(course, "01_gather")


def test_per_student_numbers_leave_questions_without_numbers_in_the_stub(tmp_path: Path) -> None:
    made_up(tmp_path)
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    path.write_text(
        path.read_text()
        + '\n\n@exercise.written(points=1, rubric="1: bytes")\ndef why_slow():\n    """Why does it wait for all of them?"""\n    return "Bytes."\n'
    )
    config = tmp_path / "course.yaml"
    config.write_text(config.read_text() + "variants:\n  mode: per_student\n")
    made = products(load_course(config))
    for name in ("01_gather/x1_gather.py", "01_gather/01_gather.ipynb"):
        assert "Why does it wait for all of them?" in made[name]
        assert "bytes take on a ring" not in made[name] and "shardlings show" in made[name]


def test_options_that_render_to_equal_texts_are_the_authors_mistake() -> None:
    exercise = Exercise()

    @exercise.choice(points=1, params={"cut": ["rows"]}, options={"a": "over {{ cut }}", "b": "over rows", "c": "none"})
    def alike(cut: str) -> str:
        """What does it need?"""
        return "a"

    with pytest.raises(
        CourseError, match="the text of alike cannot be rendered: the option 'over rows' is equal to another option"
    ):
        question_text(exercise.questions["alike"], {"cut": "rows"})

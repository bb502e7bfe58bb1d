"""``build`` keeps edited files in exercises/. Each supported Python version builds equal bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from rich.console import Console

from grader.cli import author
from grader.course.build import BUILT, Built, build, products, stale
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from tests.made_up import in_two_files, made_up

ROOT = Path(__file__).resolve().parents[2]
STUB, PUBLIC = "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py"
UNMARKED = {
    "value": 'NEEDLE = "needle-1012"',
    "annotated_value": 'NEEDLE: str = "needle-1012"',
    "pair": 'NEEDLE, OTHER = "needle-1012", 2',
    "function": 'def needle():\n    """needle-1012"""\n    return "needle-1012"',
    "async_function": 'async def needle():\n    return "needle-1012"',
    "class": 'class Needle:\n    """needle-1012"""\n    value = "needle-1012"',
    "condition": 'if ROWS:\n    NEEDLE = "needle-1012"',
    "loop": 'for NEEDLE in ["needle-1012"]:\n    pass',
    "try": 'try:\n    NEEDLE = "needle-1012"\nfinally:\n    pass',
    "assertion": 'assert ROWS == 8, "needle-1012"',
    "augmented": 'NEEDLE = ""\nNEEDLE += "needle-1012"',
    "lambda": 'needle = lambda: "needle-1012"',
    "text": '"""needle-1012"""',
    "comment": "# needle-1012",
    "misspelt_given": 'needle = exercise.given\nNEEDLE = needle("needle-1012")',
    "given_of_another": 'other = exercise\n\n\n@other.given\ndef needle():\n    return "needle-1012"',
    "wrapped_given": 'NEEDLE = str(exercise.given("needle-1012"))',
    "hidden_check": '@exercise.check(call, points=1)\ndef needle(seen):\n    """needle-1012"""\n    expect_close(seen.out, seen.a)',
    "hidden_call": 'needle = exercise.call(gather, a=A, dims={"I": 1012, "J": 8})\nNEEDLE = "needle-1012"',
    "misconception": '@exercise.misconception(fails=value)\ndef needle(a, *, mesh):\n    """needle-1012"""\n    return a',
}  # fmt: skip


def renamed(folder: Path) -> Course:
    """Rename the course's exercise, and return the course. The next build must remove the files of the old name."""
    made_up(folder)
    place = folder / "solutions" / "01_gather"
    (place / "x1_gather.py").rename(place / "x2_other.py")
    (folder / "course.yaml").write_text((folder / "course.yaml").read_text().replace("x1_gather", "x2_other"))
    return load_course(folder / "course.yaml")


def test_building_twice_changes_nothing(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert len(build(course).changed) == 5
    assert build(course) == Built([], [], {}, {}) and stale(course) == []


def test_build_updates_an_untouched_stub(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    course = made_up(tmp_path, "Say what to do.", "Say it better.")
    assert STUB in stale(course)
    done = build(course)
    assert STUB in done.changed and not done.left and not done.saved
    assert "Say it better." in (tmp_path / "exercises" / STUB).read_text() and stale(course) == []


def test_build_keeps_and_reports_a_stub_that_was_edited(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    stub = tmp_path / "exercises" / STUB
    stub.write_text("my work")
    course = made_up(tmp_path, "Say what to do.", "Say it better.")
    for _ in range(2):  # the second build must keep the file too
        done = build(course)
        assert done.left == [STUB] and STUB not in done.changed and not done.saved
        assert stub.read_text() == "my work" and stale(course) == [STUB]
    assert "Say it better." in (tmp_path / "exercises" / PUBLIC).read_text()


def test_build_keeps_an_edited_stub_of_a_removed_exercise(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    stub = tmp_path / "exercises" / STUB
    stub.write_text("my work")
    for _ in range(2):
        done = build(renamed(tmp_path))
        assert done.left == [STUB] and stub.read_text() == "my work"
        assert not (tmp_path / "exercises" / PUBLIC).exists()


def test_build_never_removes_files_of_others(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    notes = [tmp_path / "exercises" / "01_gather" / n for n in ("notes.md", "old.py", ".ipynb_checkpoints/a.ipynb")]
    for path in notes:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (tmp_path / "exercises" / "01_gather" / "empty").mkdir()
    for make in (made_up, renamed):
        for force in (False, True):
            build(make(tmp_path), force=force)
            assert [p.read_text() for p in notes] == ["mine"] * 3
            assert (tmp_path / "exercises" / "01_gather" / "empty").is_dir()


def test_build_without_a_record_replaces_no_file_that_differs(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build(course)
    (tmp_path / "exercises" / BUILT).write_bytes(b"\xff not a record")
    (tmp_path / "exercises" / STUB).write_text("my work")
    assert build(course).left == [STUB]
    done = build(made_up(tmp_path, "Say what to do.", "Say it better."))
    assert done.left == [STUB] and PUBLIC in done.changed  # build replaces its own files, but not the edited stub


def test_a_record_with_merge_conflicts_knows_the_files_of_both_sides(tmp_path: Path) -> None:
    build(made_up(tmp_path, "Say what to do.", "Theirs."))
    record, stub = tmp_path / "exercises" / BUILT, tmp_path / "exercises" / STUB
    before, text = record.read_text(), stub.read_text()
    build(made_up(tmp_path, "Say what to do.", "Ours."))
    record.write_text(f"<<<<<<< HEAD\n{record.read_text()}=======\n{before}>>>>>>> theirs\n")
    stub.write_text(text)
    assert not build(made_up(tmp_path)).left


def test_build_ignores_paths_outside_exercises_in_the_record(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build(course)
    digest = hashlib.sha256(b"mine").hexdigest()
    (tmp_path / "mine.txt").write_text("mine")
    with open(tmp_path / "exercises" / BUILT, "a") as record:
        record.write(f"{digest}  ../mine.txt\n{digest}  {tmp_path}/mine.txt\n")
    assert build(course) == Built([], [], {}, {}) and (tmp_path / "mine.txt").exists()


def test_build_force_replaces_edited_files_and_keeps_copies(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    build(course)
    for number, place in enumerate(("", ".1", ".2")):
        (tmp_path / "exercises" / STUB).write_text(f"my work {number}")
        done = build(course, force=True)
        assert done.saved == {STUB: f"exercises.bak/{STUB}{place}"} and done.changed == [STUB] and not done.left
        assert (tmp_path / f"exercises.bak/{STUB}{place}").read_text() == f"my work {number}"
        assert stale(course) == []


def test_build_force_moves_edited_files_of_removed_exercises(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    (tmp_path / "exercises" / STUB).write_text("my work")
    done = build(renamed(tmp_path), force=True)
    assert done.saved == {STUB: f"exercises.bak/{STUB}"} and STUB not in done.changed
    assert not (tmp_path / "exercises" / STUB).exists()


def test_build_prints_the_kept_and_the_replaced_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    course = made_up(tmp_path)
    build(course)
    (tmp_path / "exercises" / STUB).write_text("my work")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(author, "out", Console(width=80))
    author.build(course=None)
    assert capsys.readouterr().out == (
        f"exercises/{STUB} was edited, so it stays as it is\n"
        "to replace edited files, and move them to exercises.bak/: shardlings build --force\n"
    )
    author.build(course=None, force=True)
    assert capsys.readouterr().out == (
        f"exercises/{STUB}\nreplaced exercises/{STUB}; your edited file is now exercises.bak/{STUB}\n1 file changed\n"
    )
    author.build(course=None)
    assert capsys.readouterr().out == "exercises/ is current\n"


def test_this_python_builds_the_committed_exercises() -> None:
    """.ci/run runs this test with each supported Python, so that all of them must build equal bytes."""
    assert stale(find_course(ROOT)) == []


def test_the_committed_record_of_built_files_is_current() -> None:
    text = (ROOT / "exercises" / BUILT).read_text()
    made = products(find_course(ROOT))
    assert text == "".join(f"{hashlib.sha256(t.encode()).hexdigest()}  {p}\n" for p, t in sorted(made.items()))


def test_build_removes_the_empty_folders_of_a_removed_module(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    text = (tmp_path / "course.yaml").read_text()
    (tmp_path / "solutions" / "01_gather").rename(tmp_path / "solutions" / "02_other")
    (tmp_path / "course.yaml").write_text(text.replace("01_gather", "02_other"))
    done = build(load_course(tmp_path / "course.yaml"))
    assert {PUBLIC, STUB} < set(done.changed)
    assert not (tmp_path / "exercises" / "01_gather").exists()


def with_two_exercises(folder: Path, second: str) -> Course:
    """Return the made-up course with a second exercise, ``x2_other``, that has this source."""
    made_up(folder)
    solutions = folder / "solutions" / "01_gather"
    (solutions / "x2_other.py").write_text(second)
    config = folder / "course.yaml"
    config.write_text(config.read_text().replace("[x1_gather]", "[x1_gather, x2_other]"))
    return load_course(config)


@pytest.mark.parametrize("broken", ["def f(:\n", "import nowhere\n", ""])
def test_build_keeps_the_files_of_an_unusable_exercise_and_builds_others(tmp_path: Path, broken: str) -> None:
    good = (tmp_path / "good").mkdir() or made_up(tmp_path / "good").path_of("x1_gather").read_text()
    other = (
        good.replace("def gather(", "def other(")
        .replace("call(gather,", "call(other,")
        .replace("gather_time", "other_time")
    )
    (tmp_path / "one").mkdir()
    build(with_two_exercises(tmp_path / "one", other.replace("all_other_time", "all_gather_time")))
    folder = tmp_path / "one" / "exercises"
    kept = {
        p: (folder / p).read_bytes()
        for p in ("01_gather/x2_other.py", "01_gather/_public/x2_other.py", "01_gather/01_gather.ipynb")
    }
    course = with_two_exercises(tmp_path / "one", broken)
    first = course.path_of("x1_gather")
    first.write_text(first.read_text().replace("Say what to do.", "Say it better."))
    for _ in range(2):
        done = build(load_course(tmp_path / "one" / "course.yaml"))
        assert list(done.unusable) == ["x2_other"] and "x2_other.py" in done.unusable["x2_other"]
        assert not done.left and {p: (folder / p).read_bytes() for p in kept} == kept
    assert "Say it better." in (folder / STUB).read_text()
    whole = load_course(folder / "course.yaml")
    assert len(whole.handed_out) >= 3  # build still recognises both stubs and the old notebook as unedited


def test_the_first_build_writes_the_files_of_usable_exercises(tmp_path: Path) -> None:
    done = build(with_two_exercises(tmp_path, "def f(:\n"))
    assert STUB in done.changed and PUBLIC in done.changed and "course.yaml" in done.changed
    assert not [p for p in done.changed if p.endswith(".ipynb") or "x2_other" in p]


def test_the_release_does_not_depend_on_the_file_of_the_misconceptions(tmp_path: Path) -> None:
    one, two = made_up(tmp_path / "one"), in_two_files(tmp_path / "two")
    assert products(one) == products(two)
    for name, misconception in one.exercise("x1_gather").misconceptions.items():
        same = two.exercise("x1_gather").misconceptions[name]
        text = reference_source(two.exercise("x1_gather"), {"gather_time": "1 us"}, same)
        assert text == reference_source(one.exercise("x1_gather"), {"gather_time": "1 us"}, misconception)
        assert "x1_gather" not in text and "import exercise" not in text


@pytest.mark.parametrize("kind", UNMARKED)
def test_code_that_is_not_marked_is_in_no_released_file(tmp_path: Path, kind: str) -> None:
    marker = "@exercise.number("
    course = made_up(tmp_path, marker, f"{UNMARKED[kind]}\n\n\n{marker}")
    made = products(course)
    assert set(made) == {
        "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py", "01_gather/01_gather.ipynb", "01_gather/README.md",
        "course.yaml",
    }  # fmt: skip
    for path, text in made.items():
        assert "1012" not in text and "needle" not in text.lower(), path


def test_build_without_solutions_is_refused(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    with pytest.raises(CourseError, match="there is no solutions/ folder to build from"):
        build(load_course(tmp_path / "exercises" / "course.yaml"))

"""``list`` and ``show`` print cached output until the course or the grader changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.cli import remembered
from grader.cli.remembered import printed
from grader.course.loading import load_course
from tests.commands import shardlings


@pytest.mark.parametrize(
    "words", [("list",), ("show", "c1_no_communication", "--hint", "1"), ("show", "c1")], ids=" ".join
)
def test_output_is_the_same_from_the_cache_and_without_it(small: Path, words: tuple[str, ...]) -> None:
    kept = {"SHARDLINGS_CACHE": str(small / "cache")}
    runs = [shardlings(*words, cwd=small, **env) for env in (kept, kept, {"SHARDLINGS_CACHE": "off"})]
    assert len({(run.stdout, run.stderr, run.returncode) for run in runs}) == 1


def test_a_change_of_the_course_changes_the_output_despite_the_cache(small: Path) -> None:
    env = {"SHARDLINGS_CACHE": str(small / "cache")}
    before = shardlings("list", cwd=small, **env)
    path = small / "solutions" / "03_matmuls" / "c1_no_communication.py"
    path.write_text(path.read_text().replace("# C1 A matmul", "# C1 New: a matmul", 1))
    after = shardlings("list", cwd=small, **env)
    assert before.stdout != after.stdout and "New: a matmul" in after.stdout


def test_cached_output_is_printed_without_new_work(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARDLINGS_CACHE", str(tmp_path / "cache"))
    course, made = load_course(small / "course.yaml"), []

    def work() -> int:
        made.append(1)
        remembered.out.print("seen")
        remembered.err.print("beside")
        return 2

    assert [printed(course, ("one",), work) for _ in range(3)] == [2, 2, 2] and len(made) == 1
    assert capsys.readouterr() == ("seen\n" * 3, "beside\n" * 3)
    assert printed(course, ("other",), work) == 2 and len(made) == 2

"""The confined process that parses submissions: equal results, limits, and no parsing in other processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from grader.batch import confined
from grader.batch.confined import Confined, ParsingProcess, parsing
from grader.batch.grade import Grader
from grader.cli.appealing import appeal
from grader.intake.parsers import Parsers, Stamp
from grader.intake.submission import Refused, Submission, Unreadable
from grader.intake.times import ZIPPED, handed_in_at
from grader.integrations.nbgrader.scan import _Texts
from grader.sandbox.tiers import NoIsolation, available
from grader.sandbox.worker import WorkerDied
from grader.wire.messages import ParseRequest
from tests.handed_in import code, notebook, read_, write, zipped
from tests.made_up import COURSE, made_up
from tests.oversized import RIGHT, tried
from tests.sampled import sampled
from tests.watched import parsed_by

TIERS = [tier for tier in ("sandlock", "bwrap", "none") if not available(tier)]
BOMB = "leaderboard_name = 'x'\n" + "a\n" * 1_500_000


@pytest.fixture(scope="module", params=TIERS)
def process(request: pytest.FixtureRequest) -> Iterator[ParsingProcess]:
    with ParsingProcess(request.param) as made:
        yield made


@pytest.fixture
def parsers(process: ParsingProcess) -> Confined:
    return Confined(process)


def facts(found: Submission) -> list[Any]:
    return [chunk.facts for source in found.sources.values() for chunk in source.chunks]


def same(place: Path, parsers: Parsers) -> Submission:
    """Read a submission with and without the confined process, assert equal results, and return one of them."""
    here, there = read_(place), read_(place, parsers=parsers)
    assert (here, facts(here)) == (there, facts(there))
    return there


# -- equal results -----------------------------------------------------------------------------


def test_the_confined_process_reads_submissions_as_this_process_does(tmp_path: Path, parsers: Confined) -> None:
    write(tmp_path / "one/c3_contracting.py", "import random\nleaderboard_name = 'ott\\udc00er'\ndef f():\n    pass\n")
    write(tmp_path / "one/c3.py", "def f(): raise NotImplementedError")
    write(tmp_path / "one/03_matmuls.ipynb", notebook(code("%time a = 'é'"), code("x ="), code(3), code("check('c1')")))
    write(tmp_path / "one" / ("deep é" * 20) / ("wide" * 20) / "e1_ring_gather.py", "a = 1")
    write(tmp_path / "one/05_rings.ipynb", b"\xff\xfe")
    write(tmp_path / "two/a.zip", zipped({"c3_contracting.py": "a = 1", "b/c1_local.py": "(" * 300, "x.zip": ""}))
    write(tmp_path / "two/b.zip", zipped({"c4_same_axis_twice.py": "b = 1", "../c1_local.py": ""}))
    write(tmp_path / "two/c.zip", b"PK no zip")
    assert len(same(tmp_path / "one", parsers).notes) >= 4
    assert len(same(tmp_path / "two", parsers).notes) >= 4
    assert same(tmp_path / "two" / "a.zip", parsers).sources
    at = handed_in_at(tmp_path / "two", ["a.zip/c3_contracting.py"], parsers)
    assert at == handed_in_at(tmp_path / "two", ["a.zip/c3_contracting.py"]) and (at is None or at[1] == ZIPPED)


def test_more_archives_than_the_process_keeps_are_read(tmp_path: Path, parsers: Confined) -> None:
    places = [write(tmp_path / f"{i}.zip", zipped({f"c3_contracting ({i}).py": f"a = {i}"})) for i in range(9)]
    found = parsers.for_submission(tmp_path)
    data = [place.read_bytes() for place in places]
    archives = [found.archive(one, "a.zip") for one in data]
    assert [found.member(one, archive.files[0][1]) for one, archive in zip(data, archives, strict=True)] == [
        f"a = {i}".encode() for i in range(9)
    ]


def test_the_confined_process_parses_cells_and_python_as_this_process_does(parsers: Confined) -> None:
    cells = [
        code("!ls\nf = 1"),
        {"cell_type": "raw", "source": "é"},
        None,
        code("check('c1_local')", nbgrader={"grade_id": "g"}),
    ]
    data = notebook(*cells).encode()
    asked = (["g", "h"], ["f", "g"], ["c1_local"])
    assert parsers.cells(data, *asked) == Parsers().cells(data, *asked)
    assert parsers.python({"cell 1": "!ls\nf = 1", "cell 2": "é"}) == Parsers().python(
        {"cell 1": "!ls\nf = 1", "cell 2": "é"}
    )
    assert parsers.stamp(b'{"submitted": "2026-01-01T00:00:00+01:00"}').time
    assert parsers.stamp(b'{"student": "ada"}').student == "ada"
    assert parsers.stamp(b"[" * 99_999) == Stamp()


@pytest.mark.parametrize("data", [b'{"a": ["x", "\\ud800"], "b": 3}', b"<p>a &lt; b</p>", b"[" * 99_999, b"\xff", b"{"])
@pytest.mark.parametrize("suffix", [".ipynb", ".html", ".py"])
def test_the_confined_process_extracts_strings_as_this_process_does(
    parsers: Confined, data: bytes, suffix: str
) -> None:
    here = Parsers().strings(data, suffix)
    assert parsers.strings(data, suffix) == here.encode("utf-8", "replace").decode()


def test_a_page_that_takes_too_long_to_read_is_refused(
    tmp_path: Path, parsers: Confined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "READ_SECONDS", 0.3)
    place = write(tmp_path / "page.html", "<" * 1_000_000)
    read = _Texts(tmp_path, parsers)
    assert read.text(place) == "" and "takes more than 0.3 s to read" in read.refused[place]
    monkeypatch.setattr(parsers, "for_submission", None)
    # The parser is gone, so a second attempt to parse the refused page would fail.
    assert read.text(place) == "" and read.lines(place) == []


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_code_that_takes_all_memory_to_parse_is_graded_without_its_facts(tmp_path: Path, parsers: Confined) -> None:
    write(tmp_path / "c3_contracting.py", BOMB + "a\n" * 1_000_000)
    write(tmp_path / "c1_local.py", "leaderboard_name = 'otter'")
    found = read_(tmp_path, parsers=parsers)
    assert [f.pseudonym for f in facts(found)] == ["otter", None]


def test_a_file_that_takes_too_long_to_read_does_not_stop_the_others(
    tmp_path: Path, parsers: Confined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "READ_SECONDS", 0.3)
    write(tmp_path / "c3_contracting.py", BOMB)
    write(tmp_path / "c1_local.py", "a = 1")
    found = read_(tmp_path, parsers=parsers)
    assert [*found.sources] == ["c1_local"]
    assert found.notes == ("c3_contracting.py takes more than 0.3 s to read and was not read; make the file smaller",)
    monkeypatch.setattr(confined, "READ_SECONDS_TOTAL", 0.3)
    write(tmp_path / "other/c1_local.py", "a = 1")
    write(tmp_path / "other/c1_local (1).py", BOMB)
    write(tmp_path / "other/c3.py", "a = 1")
    late = read_(tmp_path / "other", parsers=parsers).notes
    assert " ".join(late).count("was not read: the files of this submission take more than 0.3 s to read") == 2


def test_the_time_of_refused_files_counts_towards_the_limit() -> None:
    process = ParsingProcess("none")
    process._worker.parse = lambda request, data: ({"cpu": 25.0}, [b'{"refused": "is large"}'])  # type: ignore[method-assign]
    parsers, said = Confined(process), []
    for _ in range(4):
        with pytest.raises(Refused) as refusal:
            parsers.source("a.py", b"a = 1", [])
        said.append(str(refusal.value))
    assert said == ["is large"] * 3 + ["was not read: the files of this submission take more than 60 s to read"]


def test_all_parsers_of_one_submission_share_one_time_limit() -> None:
    """The code, the times and the names in files of a submission are read by separate parsers."""
    process = ParsingProcess("none")
    process._worker.parse = lambda request, data: ({"cpu": 25.0}, [b'{"found": {}}'])  # type: ignore[method-assign]
    every = Confined(process)
    for _ in range(3):
        assert every.for_submission(Path("ada")).stamp(b"{}") == Stamp()
    with pytest.raises(Refused, match="the files of this submission take more than 60 s to read"):
        every.for_submission(Path("ada")).stamp(b"{}")
    assert every.for_submission(Path("bob")).stamp(b"{}") == Stamp()


def test_an_archive_that_is_read_again_is_stored_once(parsers: Confined) -> None:
    found, data = parsers.for_submission(Path("a.zip")), zipped({"c3_contracting.py": "a = 1"})
    for _ in range(3):
        assert found.archive(bytes(bytearray(data)), "a.zip").files
    assert len(found._archives) == 1


def test_a_notebook_of_too_many_cells_is_refused(tmp_path: Path, parsers: Confined) -> None:
    write(tmp_path / "03_matmuls.ipynb", notebook(*[code("a")] * 10_001))
    assert same(tmp_path, parsers).notes == (
        "03_matmuls.ipynb has more than 10000 cells and was not read; hand in only your work",
    )


@pytest.mark.slow
def test_json_that_takes_all_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "READ_MEMORY_MIB", 1024)
    write(tmp_path / "03_matmuls.ipynb", '{"cells": [], "x": [' + "{}," * 16_000_000 + "0]}")
    with parsing() as parsers:
        assert read_(tmp_path, parsers=parsers).notes == (
            "03_matmuls.ipynb needs more than 1024 MiB of memory to read; make the file smaller",
        )
        assert parsers.stamp(b'{"submitted": "2026-01-01T00:00:00+01:00"}').time  # a new process answers


@pytest.mark.slow
def test_the_process_is_replaced_only_after_it_read_a_large_file(process: ParsingProcess, parsers: Confined) -> None:
    """In Linux a new process inherits the grader's peak memory. This memory alone must not end the process."""
    process._worker.kill()
    large = b"a" * (700 << 20)
    parsers.source("c3_contracting.py", b"a = 1", [])
    pids = [process._worker.process and process._worker.process.pid]
    parsers.source("c1_local.py", BOMB.encode(), [])
    pids.append(process._worker.process and process._worker.process.pid)
    assert pids[0] and pids[1] is None, "a large file takes memory that the next one may need"
    assert large[0] == ord("a")


@pytest.mark.parametrize(
    ("spent", "record", "ends"),
    [(False, b'{"found": "words"}', False), (True, b'{"found": "words"}', True), (False, b'{"memory": true}', True)],
)
def test_a_process_without_memory_ends_after_its_answer(spent: bool, record: bytes, ends: bool) -> None:
    process, killed, form = ParsingProcess("none"), list[bool](), TypeAdapter(str)
    process._worker.parse = lambda request, data: ({"cpu": 0.0, "spent": spent}, [record])  # type: ignore[method-assign]
    process._worker.kill = lambda: killed.append(True)  # type: ignore[method-assign]
    request: ParseRequest = {"parse": "strings", "about": {}, "submission": 0, "seconds": 1.0}
    with pytest.raises(Refused) if b"memory" in record else contextlib.nullcontext():
        assert process.ask(request, [b"text"], form, lambda seconds: None) == ("words", [])
    assert killed == [True] * ends


def test_a_parsing_process_that_was_killed_is_started_again(
    tmp_path: Path, process: ParsingProcess, parsers: Confined
) -> None:
    place = write(tmp_path / "a.zip", zipped({"c3_contracting.py": "a = 1"}))
    found, data = parsers.for_submission(place), place.read_bytes()
    archive = found.archive(data, "a.zip")
    assert process._worker.process is not None
    os.killpg(process._worker.process.pid, signal.SIGKILL)
    assert found.member(data, archive.files[0][1]) == b"a = 1"


@pytest.mark.parametrize(("works", "error"), [(True, Refused), (False, Unreadable)])
def test_a_process_that_dies_twice_is_the_learners_or_the_machines_fault(works: bool, error: type[Exception]) -> None:
    """If the process can still read a file of the grader, the fault is the learner's, else the machine's."""
    process = ParsingProcess("none")

    def parse(request: dict[str, Any], data: Any) -> Any:
        if works and request["parse"] == "stamp" and request["submission"] < 0:
            return {}, [b'{"found": "2026-01-01T00:00:00+00:00"}']
        raise WorkerDied("died")

    process._worker.parse = parse  # type: ignore[method-assign]
    with pytest.raises(error):
        Confined(process).source("a.py", b"a = 1", [])


@pytest.mark.parametrize(("size", "error"), [(1, Unreadable), (confined.SMALL, Refused)])
def test_a_machine_without_memory_costs_no_student_a_small_file(size: int, error: type[Exception]) -> None:
    """The kernel kills the process. For a small file the fault is the machine's, for a large file the learner's."""
    process = ParsingProcess("none")
    parse = process._worker.parse

    def killed(request: ParseRequest, data: Any) -> Any:
        process._worker.await_ready()
        assert process._worker.process is not None
        if request["submission"] >= 0:
            process._worker.process.kill()
        return parse(request, data)

    process._worker.parse = killed  # type: ignore[method-assign]
    with process, pytest.raises(error):
        Confined(process).source("a.py", b"#" * size, [])


@pytest.mark.parametrize(
    "answer", [b"[", b"[]", b"{}", b'{"found": 3}', b'{"found": {"chunks": [3]}}', b'{"refused": 1}']
)
def test_a_malformed_answer_of_the_parsing_process_is_refused(answer: bytes) -> None:
    """A submission that takes over the process can send any bytes."""
    process = ParsingProcess("none")
    ours = {}, [b'{"found": "2026-01-01T00:00:00"}']
    process._worker.parse = lambda request, data: ours if request["submission"] < 0 else ({"cpu": 0}, [answer])  # type: ignore[method-assign]
    with pytest.raises(Refused):
        Confined(process).source("a.py", b"a = 1", [])


@pytest.mark.slow
def test_no_size_depth_or_number_leaves_points_pending(tmp_path: Path) -> None:
    """Run forty cases of ``python -m tests.oversized``."""
    with parsing() as parsers, Grader(made_up(tmp_path), TIERS[0]) as grader:
        for seed in range(40):
            kind, _, report = tried(grader, parsers, f"ci/{seed}")
            assert not report.broken and not report.pending, (seed, kind)


# -- no parsing in processes of the staff ------------------------------------------------------


@pytest.mark.parametrize("command", sampled(1, ["grade", "appeal", "similar"]))
def test_no_command_of_the_staff_parses_a_submission(tmp_path: Path, command: str) -> None:
    made_up(tmp_path / "course")
    marked = RIGHT + "# MARKED\nleaderboard_name = 'x'\n"
    write(tmp_path / "class/ada/x1_gather.py", marked)
    write(tmp_path / "class/bo/x1_gather.ipynb", notebook(code(marked), code("!ls")))
    write(
        tmp_path / "class/cy/work.zip", zipped({"x1_gather.py": marked, "manifest.json": '{"submitted": "2026-01-02"}'})
    )
    late = "late: {percent_per_day: 10, trust: file-dates}\n"
    text = COURSE.replace("    title: Gather", "    title: Gather\n    deadline: 2026-01-01")
    write(tmp_path / "course/course.yaml", text + late)
    words = {
        "grade": ["grade", "class", "--out", "out"],
        "appeal": ["appeal", "cy", "traffic", "class"],
        "similar": ["similar", "class"],
    }[command]
    seen, done = parsed_by(*words, "--course", "course", cwd=tmp_path)
    assert seen == set(), done.stdout + done.stderr
    assert {"grade": "3 submissions", "appeal": "traffic: ", "similar": "compared"}[command] in done.stdout, done.stdout


@pytest.mark.parametrize("way", ["appeal", "nbgrader autograde"])
def test_without_a_sandbox_nothing_is_parsed(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These commands refuse to grade without a sandbox. They must refuse before they parse anything."""
    course, place = made_up(tmp_path / "course"), write(tmp_path / "class/ada/x1_gather.py", RIGHT).parents[1]
    monkeypatch.setattr("grader.sandbox.tiers.available", lambda tier: "not here")
    monkeypatch.setattr(confined, "ParsingProcess", None)
    with pytest.raises(NoIsolation):
        if way == "appeal":
            appeal("ada", "traffic", [place], isolation="auto", course=course.root)
        else:
            autograder = pytest.importorskip("grader.integrations.nbgrader.autograder")
            settings = autograder.Shardlings(root=str(tmp_path))
            settings.loaded = course
            settings.read(place / "ada/x1_gather.py", "ada", "01_gather", "other", [])


def test_parsed_by_detects_a_command_that_parses_a_submission(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    made_up(tmp_path / "course")
    write(tmp_path / "x1_gather.py", RIGHT + "# MARKED\n")
    assert parsed_by("check", "--course", "course", "--work", "x1_gather.py", cwd=tmp_path)[0] == {"python"}

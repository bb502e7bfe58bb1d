"""``shardlings doctor --attack``: run the hostile corpus on this machine and print what each attack gains.

One run of ``shardlings grade`` grades the hostile and the honest submissions together. The reports of the honest
submissions must not change by a byte. Afterwards this module examines everything that a submission could have
reached.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
CORPUS = CHECKOUT / "tests" / "submissions" / "hostile"
COURSE = CHECKOUT / "tests" / "submissions" / "hostile_course"
NAIVE = CHECKOUT / "tests" / "naive.py"
JOBS = 6  # this many attacks run at a time, even on few cores, because attacks mostly wait
CONTROLS = 3
SECRETS = ("CANARY", "canary-of-the-course-seed", "canary_of_a_solution_line")


@dataclass
class Row:
    """One attack.

    Attributes:
        name: the attack's folder in the corpus.
        kind: the class of the attack.
        does: what the attack tries to do.
        before: what the attack gains from the naive grader.
        now: what the attack gains from this grader; empty if it gains nothing.
    """

    name: str
    kind: str
    does: str
    before: str
    now: str = ""


@dataclass
class Outcome:
    """The result of a run.

    Attributes:
        rows: one row per attack.
        loose: one line for each harm that cannot be traced to one submission.
        seconds: duration of the run.
        isolation: the sandbox tier in which the submissions ran.
    """

    rows: list[Row]
    loose: list[str] = field(default_factory=list)
    seconds: float = 0.0
    isolation: str = ""

    @property
    def ok(self) -> bool:
        return not self.loose and not any(row.now for row in self.rows)


def attack(isolation: str = "auto", jobs: int = JOBS, *, controls: bool = False, only: Iterable[str] = ()) -> Outcome:
    """Run the corpus, or some of its attacks, on this machine.

    Args:
        isolation: the sandbox tier, as in ``shardlings grade --isolation``.
        jobs: number of submissions graded at a time.
        controls: also run each attack against the naive grader, in separate processes.
        only: names of attacks; all attacks if empty.
    """
    verdicts = read_verdicts()
    names = [n for n in verdicts if not only or n in set(only)]
    with tempfile.TemporaryDirectory(prefix="shardlings-attack-") as folder:
        place = Path(folder).resolve()
        place.chmod(0o755)
        with Target(place / "target") as target:
            build(place / "hostile", names, target)
            start = time.monotonic()
            grade([place / "hostile", COURSE / "honest"], place / "out", place, isolation, jobs)
            seconds = time.monotonic() - start
            alone = place / "alone"
            grade([COURSE / "honest"], alone, place, isolation, 1)
            outcome = Outcome([], target.harm() + leftovers(place), seconds)
            outcome.loose += changed_reports(place / "out", alone)
            for name in names:
                row, isolation = judge(name, verdicts[name], place / "out")
                outcome.isolation = isolation or outcome.isolation
                outcome.rows.append(row)
        if controls:
            run_controls(outcome.rows, verdicts, place)
    return outcome


def read_verdicts() -> dict[str, dict[str, Any]]:
    return yaml.safe_load((CORPUS / "verdicts.yaml").read_text(encoding="utf-8"))


def grade(paths: list[Path], out: Path, tmp: Path, isolation: str, jobs: int) -> subprocess.CompletedProcess[str]:
    """Run ``shardlings grade``, with its temporary files in ``tmp``."""
    command = [sys.executable, "-m", "grader", "grade", *map(str, paths), "--course", str(COURSE), "--out", str(out),
               "-j", str(jobs), "--isolation", isolation, "--json"]  # fmt: skip
    env = os.environ | {"TMPDIR": str(tmp), "CANARY_ENVIRONMENT": "CANARY-of-the-environment",
                        "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=env, errors="replace", timeout=1200)
    if not (out / "grades.csv").is_file():
        raise RuntimeError(f"shardlings grade wrote no grades.csv: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def build(to: Path, names: Iterable[str], target: Target) -> None:
    """Copy attacks of the corpus to the folder ``to``, and write the path and port of ``target`` into their files."""
    for name in names:
        shutil.copytree(CORPUS / name, to / name)
        for file in list((to / name).rglob("*")):
            if file.is_file():
                text = file.read_bytes()
                aimed = text.replace(b"@TARGET@", str(target.path).encode()).replace(
                    b"@PORT@", str(target.port).encode()
                )
                # A file ``*.link`` in the corpus becomes a symbolic link. The file's text is the path to which the link
                # points.
                if file.suffix == ".link":
                    file.unlink()
                    file.with_suffix("").symlink_to(aimed.decode().strip())
                elif file.suffix != ".zip" and aimed != text:
                    file.write_bytes(aimed)


# -- the target of the attacks ------------------------------------------------------------------


class Target:
    """A folder of secrets and of files to damage, and sockets on this machine that no submission may reach."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrived: list[str] = []

    def __enter__(self) -> Target:
        for folder in ("solutions", "submitted/bob", "results", "cache"):
            (self.path / folder).mkdir(parents=True)
        (self.path / "course.yaml").write_text("seed: CANARY-of-the-seed\n")
        for name in ("h1_total.py", "solutions_h1.py"):
            (self.path / "solutions" / name).write_text('SECRET = "CANARY-of-a-solution"\nraise RuntimeError(SECRET)\n')
        (self.path / "submitted" / "bob" / "h1_total.py").write_text("# CANARY-of-bob\n")
        (self.path / "submitted" / "CANARY-listing").touch()
        (self.path / "git-object").write_bytes(zlib.compress(b"blob 20\0CANARY-of-git"))
        (self.path / "victim.txt").write_text("untouched\n")
        with contextlib.closing(sqlite3.connect(self.path / "gradebook.db")) as book:
            book.execute("create table grades (what text)")
            book.execute("insert into grades values ('CANARY-of-the-gradebook')")
            book.commit()
        self._listen()
        self.before = self.snapshot()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        for one in self._sockets:
            one.close()
        Path(f"/dev/shm/shardlings-{self.port}").unlink(missing_ok=True)

    def _listen(self) -> None:
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        unix.bind(str(self.path / "unix.sock"))
        abstract.bind(f"\0shardlings-{self.port}")
        self._sockets = {tcp: "tcp", udp: "udp", unix: "a unix socket", abstract: "an abstract socket"}
        for one in (unix, abstract):
            one.listen()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._hear(0.05)

    def _hear(self, seconds: float) -> None:
        for one in select.select(list(self._sockets), [], [], seconds)[0]:
            self.arrived.append(self._sockets[one])
            with contextlib.suppress(OSError):
                if one.type == socket.SOCK_DGRAM:
                    one.recv(1)
                else:
                    one.accept()[0].close()

    def hear_all(self) -> None:
        """Add all messages that were sent until now to ``arrived``, and stop the thread that listens."""
        self._stop.set()
        self._thread.join()
        self._hear(0)

    def snapshot(self) -> dict[str, tuple]:
        """Return modes, owners, times and contents of the target's files, and files that attacks left elsewhere."""
        found: dict[str, tuple] = {}
        for file in sorted(self.path.rglob("*")):
            about = file.lstat()
            content = file.read_bytes() if file.is_file() else b""
            found[str(file)] = (about.st_mode, about.st_uid, about.st_mtime_ns, content)
        for folder in {*filter(os.path.isdir, sys.path), sys.prefix, str(Path(json.__file__).parent / "__pycache__")}:
            found[folder] = tuple(sorted(n for n in os.listdir(folder) if "shardlings-evil" in n or "sitecustom" in n))
        found["json.pyc"] = (Path(json.__cached__).stat().st_size if os.path.exists(json.__cached__) else 0,)
        found["/dev/shm"] = (os.path.exists(f"/dev/shm/shardlings-{self.port}"),)
        return found

    def harm(self) -> list[str]:
        """Return one line for each file that changed, and for each message that arrived, since the start."""
        self.hear_all()
        now = self.snapshot()
        changed = [name for name in {*self.before, *now} if self.before.get(name) != now.get(name)]
        return [f"changed: {name}" for name in sorted(changed)] + [f"reached: {what}" for what in self.arrived]


def leftovers(tmp: Path) -> list[str]:
    """Return one line for each scratch folder and each process that a finished grading run left behind."""
    found = [f"left behind: {p.name}" for p in tmp.glob("shardlings-*")]
    mark = str(tmp).encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.name != str(os.getpid()) and mark in (process / "environ").read_bytes():
                found.append(f"still running: process {process.name}")
    return found


def changed_reports(out: Path, alone: Path) -> list[str]:
    """Return one line for each honest report that differs from the report of a run without attackers."""
    return [
        f"changed: the report of {file.stem}"
        for file in sorted((alone / "reports").glob("*.json"))
        if file.read_bytes() != (out / "reports" / file.name).read_bytes()
    ]


def judge(name: str, verdict: dict[str, Any], out: Path) -> tuple[Row, str]:
    """Return the row of an attack, from its report and its pages, and the isolation that the report names."""
    row = Row(name, verdict["class"], verdict["does"], verdict["control"])
    try:
        text = (out / "reports" / f"{name}.json").read_text(encoding="utf-8")
    except OSError:
        row.now = "no report"
        return row, ""
    report = json.loads(text)
    if report["earned"] != verdict["earned"]:
        row.now = f"{report['earned']:g} points instead of {verdict['earned']:g}"
    elif report["pending"] and not verdict.get("pending"):
        row.now = "a check is broken"
    elif not re.search(verdict.get("says", ""), said := " ".join(_texts(report))):
        row.now = f"the report does not say {verdict['says']!r}, but {said[:500]!r}"
    pages = text + "".join((out / part / f"{name}.html").read_text() for part in ("", "students"))
    leaked = [s for s in SECRETS if s in pages]
    if leaked:
        row.now = f"the report or a page shows the secret {leaked[0]}"
    elif "<script>alert" in pages.replace(text, "") or "\x1b" in pages:
        row.now = "a page shows its text without escapes"
    return row, report["isolation"]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


# -- controls ----------------------------------------------------------------------------------


def run_controls(rows: list[Row], verdicts: dict[str, dict[str, Any]], place: Path) -> None:
    """Run each attack against the naive grader and set the row's ``before`` to what the attack gains."""
    graders: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(CONTROLS) as pool:
        for _ in range(CONTROLS):
            graders.put(stack.enter_context(naive_grader()))

        def control(row: Row) -> None:
            grader = graders.get()
            _control(row, verdicts[row.name], place / "control" / row.name, grader)
            graders.put(grader)

        list(pool.map(control, rows))


@contextlib.contextmanager
def naive_grader() -> Iterator[subprocess.Popen[str]]:
    """Run a grader that imports JAX once and forks for each submission."""
    env = os.environ | {"CANARY_ENVIRONMENT": "CANARY-of-the-environment"}
    command = [sys.executable, str(NAIVE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env=env) as one:  # fmt: skip
        try:
            yield one
        finally:
            one.kill()


def _ask_naive(grader: subprocess.Popen[str], folder: Path, answer: Path) -> str:
    assert grader.stdin is not None and grader.stdout is not None
    grader.stdin.write(f"{folder}\t{answer}\n")
    grader.stdin.flush()
    if not select.select([grader.stdout], [], [], 60)[0] or grader.stdout.readline() != "done\n":
        raise RuntimeError(f"the naive grader did not finish {folder.name}")
    return answer.read_text(encoding="utf-8", errors="replace") if answer.exists() else ""


def _control(row: Row, verdict: dict[str, Any], aim: Path, grader: subprocess.Popen[str]) -> None:
    promised = verdict["control"]
    if promised.startswith("none"):
        return
    with Target(aim / "target") as target:
        build(aim / "hostile", [row.name], target)
        answered = _ask_naive(grader, aim / "hostile" / row.name, aim / "answer")
        harm = target.harm()
        seen = {"died": True, "score": 0, "output": "", "survivors": 0}
        with contextlib.suppress(ValueError):
            seen |= json.loads(answered.splitlines()[-1] if answered else "")
        gained = {
            "score": f"{seen['score']:g} points" if seen["score"] > verdict["earned"] else "",
            "leak": "printed a secret" if "CANARY" in seen["output"] else "",
            "write": "changed a file" if any(h.startswith("changed") for h in harm) else "",
            "network": "reached a socket" if target.arrived else "",
            "survives": "left a process" if seen["survivors"] else "",
            "dies": "stopped the grader" if seen["died"] else "",
        }
    row.before = gained[promised] or "nothing"


def table(outcome: Outcome) -> str:
    """Return the table of SECURITY.md: one row per class, with its attacks and gains."""
    lines = [
        "| class | attacks | gain from the naive grader | without a control | gain from this grader |",
        "|---|--:|--:|--:|--:|",
    ]
    kinds = list(dict.fromkeys(row.kind for row in outcome.rows))
    totals = [0, 0, 0, 0]
    for kind in kinds:
        of_kind = [row for row in outcome.rows if row.kind == kind]
        none = sum(row.before.startswith("none") for row in of_kind)
        numbers = [len(of_kind), len(of_kind) - none - sum(row.before == "nothing" for row in of_kind), none,
                   sum(bool(row.now) for row in of_kind)]  # fmt: skip
        totals = [a + b for a, b in zip(totals, numbers, strict=True)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    lines.append(f"| **all** | {' | '.join(f'**{n}**' for n in totals)} |")
    gained = [f"- {row.name}: {row.now}" for row in outcome.rows if row.now] + [f"- {harm}" for harm in outcome.loose]
    idle = [f"- {row.name}: its control gains nothing" for row in outcome.rows if row.before == "nothing"]
    return "\n".join([*lines, *(["", "**Gained:**", *gained] if gained else []), *(["", *idle] if idle else [])])


def main() -> None:
    """Run ``python -m tests.attack [TIER] [--controls] [NAME...]``."""
    words = sys.argv[1:]
    tier = next((w for w in words if w in ("sandlock", "bwrap", "none", "auto")), "auto")
    names = [w for w in words if w != tier and not w.startswith("-")]
    outcome = attack(tier, controls="--controls" in words, only=names)
    print(table(outcome))
    print(f"\n{outcome.seconds:.0f} s with {outcome.isolation}")
    sys.exit(0 if outcome.ok else 1)


if __name__ == "__main__":
    main()

"""Workers answer asks with findings: values, or faults that say why a process ended. Learners may forge answers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from grader.batch import replies
from grader.batch.cost import Cost
from grader.batch.in_process import InProcess
from grader.batch.replies import GAVE_UP, OTHER_KIND, Reply, RunResult
from grader.batch.running import ProgramRuns, collect, trace
from grader.batch.workers import Pool, Workers
from grader.common.observation import Fault, Observation, Outcome
from grader.course.loading import Course, load_course
from grader.exercise import Call, Cases, Quantity, Question, Task, Written, normal
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask, rng
from grader.judging.seen import Finding
from grader.sandbox.allowance import backstop
from grader.sandbox.tiers import available
from grader.sandbox.worker import WorkerDied
from grader.wire.limits import GRACE_SECONDS, MAX_FILE, MAX_RESTARTS, MAX_TEXT
from tests.seen import held

COURSE = """\
name: small
limits: {trace_seconds: 20, total_seconds: 60, run_seconds: 30}
modules:
  - id: 01_one
    title: One
    exercises: [one]
"""
TIER = next(t for t in ("sandlock", "bwrap", "none") if not available(t))
A = normal(8, 4, spec=("x",))


def unused() -> None: ...


def source(text: str, *cells: str) -> Source:
    chunks = [Chunk("a.py", text)] if not cells else [Chunk(f"cell {i}", t) for i, t in enumerate((text, *cells), 1)]
    return Source("a.py", tuple(chunks))


def cases(task: str, *found: dict[str, Any]) -> Ask:
    return Ask(Cases(Task(task, "function", unused), (), None), cases=list(found or [{}]))


def array(task: str = "f", mesh: dict[str, int] | None = None, runs: int = 1) -> Ask:
    mesh = mesh or {"x": 4}
    call = Call(Task(task, "array", unused), {"a": A}, {}, (mesh,), {}, {})
    return Ask(call, mesh, {}, [{"a": A.sample({}, rng("s", str(i)))} for i in range(runs)])


def question(name: str) -> Ask:
    return Ask(Question(name, "How long?", lambda: 1.0, 1, Quantity("us")))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    path = tmp_path_factory.mktemp("course") / "course.yaml"
    path.write_text(COURSE)
    return load_course(path)


@pytest.fixture(scope="module")
def workers(course: Course) -> Iterator[Workers]:
    made = Workers(course, TIER)
    yield made
    made.close()


@pytest.fixture(scope="module")
def impatient(course: Course) -> Iterator[Workers]:
    """Return workers with a time limit of 1 s, for tasks that never end."""
    short = course.config.limits.model_copy(update={"trace_seconds": 1})
    made = Workers(Course(course.root, course.config.model_copy(update={"limits": short})), TIER)
    yield made
    made.close()


def findings(workers: Workers, text: str, *asks: Ask) -> list[Any]:
    """Return for each ask an observation, a list of outcomes, or a fault."""
    answered, _ = collect(workers, source(text), list(asks))
    assert [a.ask for a in answered] == list(asks)
    return [held(a.finding) for a in answered]


def values(finding: Any) -> list[Any]:
    assert isinstance(finding, list), finding
    return [o.value for o in finding]


# -- with a pair of workers --------------------------------------------------------------------


def test_every_kind_of_ask_is_answered_in_order(workers: Workers) -> None:
    text = "def f(a, *, mesh):\n    return a + 1\ndef g(n):\n    return 2 * n\nq = '3 us'\n"
    asks = [cases("g", {"n": 1}, {"n": 2}), array(), question("q"), array(mesh={"x": 8}, runs=2)]
    doubled, seen, answer, twice = findings(workers, text, *asks)
    assert values(doubled) == [2, 4] and values(answer) == ["3 us"]
    assert isinstance(seen, Observation) and isinstance(twice, Observation)
    assert (seen.outputs[0][0].value == asks[1].inputs[0]["a"] + 1).all()
    assert len(seen.outputs[0][0].shards) == 4 and len(twice.outputs[0][0].shards) == 8
    for inputs, outputs in zip(asks[3].inputs, twice.outputs, strict=True):
        assert (outputs[0].value == inputs["a"] + 1).all()


def test_an_ask_that_ends_the_process_fails_alone(workers: Workers) -> None:
    text = "import os\ndef good(): return 1\ndef bad(): os._exit(3)\ndef later(): return 2\n"
    first, ended, last = findings(workers, text, cases("good"), cases("bad"), cases("later"))
    assert values(first) == [1] and values(last) == [2]
    assert ended == Fault("crashed", "it ended the process: exited with 3")


def test_each_ask_that_ends_the_process_is_reported(workers: Workers) -> None:
    text = "import os, signal\ndef a(): os._exit(3)\ndef b(): os.kill(os.getpid(), signal.SIGSEGV)\ndef c(): return 1\n"
    exited, died, good = findings(workers, text, cases("a"), cases("b"), cases("c"))
    assert exited == Fault("crashed", "it ended the process: exited with 3")
    assert died == Fault("crashed", "it ended the process: died of signal 11")
    assert values(good) == [1]


def test_a_crash_that_does_not_repeat_is_answered_the_second_time(course: Course, tmp_path: Path) -> None:
    """The grader asks again after a process died, so one death by chance costs no points."""
    mark = tmp_path / "it crashed"  # this file is outside the scratch folder, which the worker empties
    crash = (
        f"    if not os.path.exists({str(mark)!r}):\n        open({str(mark)!r}, 'w').close()\n        os._exit(3)\n"
    )
    text = f"import os\ndef a(): return 1\ndef b():\n{crash}    return 2\n"
    with contextlib.closing(Workers(course, "none")) as unconfined:
        assert [values(f) for f in findings(unconfined, text, cases("a"), cases("b"))] == [[1], [2]]
    assert mark.is_file()


def test_xlas_messages_are_equal_each_time(workers: Workers) -> None:
    """XLA's message has a mark of the grader. The mark differs between processes, so reports omit it."""
    text = "import jax\nfrom jax.sharding import PartitionSpec as P\ndef f(a, *, mesh):\n    local = lambda a: jax.lax.pmax(jax.lax.complex(a, a), 'x')\n    return jax.shard_map(local, mesh=mesh, in_specs=P('x'), out_specs=P())(a)\n"
    (first,) = findings(workers, text, array())
    workers.runners[0].worker.kill()
    (again,) = findings(workers, text, array())
    assert isinstance(first, Fault) and first.kind == "compile"
    assert first == again and "by_hand" not in first.message


def test_asks_after_too_many_crashes_are_not_run(workers: Workers) -> None:
    count = MAX_RESTARTS
    text = "import os\n" + "".join(f"def t{i}(): os._exit({i + 1})\n" for i in range(count)) + "def good(): return 1\n"
    found = findings(workers, text, *(cases(f"t{i}") for i in range(count)), cases("good"))
    assert found[0] == Fault("crashed", "it ended the process: exited with 1")
    assert isinstance(found[-1], Fault) and found[-1].kind == "refused"
    assert found[-1].message == f"not tried, because other code of this file ended the process {MAX_RESTARTS} times"


def test_a_function_that_ends_the_process_costs_no_other_function(workers: Workers) -> None:
    """Earlier, a function with several cases or meshes used up all child processes of the file."""
    text = "import os\ndef bad(n): os._exit(3)\ndef good(): return 1\n"
    *bad, good = findings(workers, text, *(cases("bad", {"n": n}) for n in range(2 * MAX_RESTARTS)), cases("good"))
    assert bad == [Fault("crashed", "it ended the process: exited with 3")] * len(bad)
    assert values(good) == [1]


def test_a_file_that_ends_the_process_while_loading_fails_every_ask(workers: Workers) -> None:
    found = findings(workers, "import os\nos._exit(5)\n", cases("a"), cases("b"), question("q"))
    assert found == [Fault("crashed", "the loading of your file ended the process: exited with 5")] * 3


def test_a_task_that_never_ends_is_reported_and_the_next_one_answered(impatient: Workers) -> None:
    text = "def a():\n    while True: pass\ndef b(): return 1\n"
    hung, good = findings(impatient, text, cases("a"), cases("b"))
    assert isinstance(hung, Fault)
    assert (hung.kind, hung.message) == ("timeout", "did not finish within 1 s")
    assert values(good) == [1]


BUSY = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n"


def test_each_cell_of_a_notebook_has_the_whole_time_limit(impatient: Workers) -> None:
    cells = [BUSY] * 7 + ["while True: pass", BUSY, "def f(): return 1\nq = 7\n"]
    found = collect(impatient, source(*cells), [cases("f"), question("q")])[0]
    assert [one.finding.outcomes[0].value for one in found] == [1, 7]


@pytest.mark.slow
def test_a_cell_that_cannot_be_interrupted_ends_the_loading(impatient: Workers) -> None:
    blocked = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])\nwhile True: pass"
    found = collect(impatient, source(BUSY, blocked, "def f(): return 1\n"), [cases("f")])[0]
    assert found[0].finding.fault == Fault("timeout", "the loading of your file did not finish within 1 s")


@pytest.mark.slow
def test_a_task_that_cannot_be_interrupted_is_killed(impatient: Workers) -> None:
    text = "import signal\ndef a():\n    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])\n    while True: pass\ndef b(): return 1\n"
    hung, other = findings(impatient, text, cases("a"), cases("b"))
    assert hung == Fault("timeout", "it did not finish within 1 s")
    assert other == Fault("timeout", "not run, because a of this exercise did not finish within 1 s")


IDLE = "2 s of idle time. This limit is short because an exercise of this submission exceeded its time limit earlier"
SLEEPER = "import time\ndef forever(): time.sleep(1e6)\ndef f(): forever()\ndef g(): forever()\ndef h(): return 1\n"


@pytest.mark.slow
def test_no_ask_runs_after_a_function_of_the_exercise_that_sleeps(impatient: Workers) -> None:
    began = time.monotonic()
    text, asks = f"{SLEEPER}q = 7\n", (cases("h"), cases("f"), cases("f"), cases("g"), question("q"))
    done, one, again, other, answer = findings(impatient, text, *asks)
    assert values(done) == [1]
    assert values(answer) == [7], "answers are read, not run"
    assert one == again == Fault("timeout", "it did not finish within 1 s")
    assert other == Fault("timeout", "not run, because f of this exercise did not finish within 1 s")
    assert time.monotonic() - began < backstop(1 + GRACE_SECONDS)  # the CPU limit ends the task before the wall limit


@pytest.mark.slow
def test_an_answer_that_sleeps_costs_no_other_answer_and_no_function(impatient: Workers) -> None:
    text = (
        f"{SLEEPER}class Lazy(float):\n    __abs__ = __float__ = __repr__ = lambda self: forever()\np = Lazy()\nq = 7\n"
    )
    lazy, answer, done = findings(impatient, text, question("p"), question("q"), cases("h"))
    assert lazy == Fault("timeout", "it did not finish within 1 s")
    assert (values(answer), values(done)) == ([7], [1])


def test_after_an_exercise_that_sleeps_the_others_may_idle_two_seconds(impatient: Workers) -> None:
    """After the first function that sleeps, later exercises have an idle limit of two seconds. Other functions still run."""
    tried = (("f", "a"), ("h", "b"), ("g", "c"), ("f", "d"), ("h", "e"))
    asks, cost = [replace(cases(task), exercise=of) for task, of in tried], Cost(impatient.limits)
    found = trace(impatient, source(SLEEPER), asks, cost).replies
    assert cost.hung
    one, answered, two, three, other = (found[ask] for ask in asks)
    assert one.fault == Fault("timeout", "it did not finish within 1 s")
    assert two.fault == three.fault == Fault("timeout", f"it did not finish within {IDLE}")
    assert answered.fault is None and other.fault is None
    first = trace(impatient, source(SLEEPER), asks[:1], cost).replies[asks[0]]
    assert first.fault == three.fault, "the submission's other files count"


@pytest.mark.slow
def test_sleeping_counts_towards_the_submissions_time(impatient: Workers) -> None:
    """Otherwise a submission of 50 files with functions that sleep delays the class by 50 time limits."""
    cost = Cost(impatient.limits)
    trace(impatient, source(SLEEPER), [cases("f")], cost)
    assert cost.tracing > impatient.limits.trace_seconds


def test_a_slow_submission_is_reported_while_the_grader_works(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.batch.workers.SLOW", 0.05)
    pool, seconds, twice = Pool[bool]([workers]), list[float](), Event()

    def slow(name: str, so_far: float) -> None:
        assert name == "sleeper"
        seconds.append(so_far)
        if len(seconds) == 2:
            twice.set()

    pool.slow, done = slow, dict[str, bool | Exception]()
    pool.each(["sleeper"], lambda name: twice.wait(60), done.__setitem__)
    assert done == {"sleeper": True}
    assert 0.05 <= seconds[0] <= seconds[1] / 2


def test_code_cannot_report_hidden_cases_of_another_exercise(workers: Workers) -> None:
    """The first exercise stores its arguments, and the second returns them."""
    hidden = replace(cases("a", {"n": 41}), hidden_inputs=True)
    text = "known = []\ndef a(n):\n    known.append(n)\n    return n\ndef b(): return known\n"
    shown, _, told = findings(workers, text, cases("a", {"n": 1}), hidden, cases("b"))
    assert values(shown) == [1] and values(told) == [[1]]


def test_the_error_that_stopped_a_cell_is_a_note(workers: Workers) -> None:
    answered, notes = collect(workers, source("x = 1", "y = 1\n1 / 0", "def a(): return x"), [cases("a")])
    assert notes == ["cell 2 stopped at line 2: ZeroDivisionError: division by zero"]
    assert values(held(answered[0].finding)) == [1]


def test_at_most_five_notes_are_kept(workers: Workers) -> None:
    _, notes = collect(workers, source(*["1 / 0"] * 9), [cases("a")])
    assert len(notes) == 5 and notes[4].startswith("cell 5 ")


def test_a_task_that_floods_the_pipe_is_reported(workers: Workers) -> None:
    text = "import os\ndef a():\n    while True: os.write(11, bytes(1 << 20))\ndef b(): return 1\n"
    flooded, good = findings(workers, text, cases("a"), cases("b"))
    assert isinstance(flooded, Fault) and flooded.kind == "crashed"
    assert values(good) == [1]


# -- forged frames ---------------------------------------------------------------------------

FORGE = """
import json, os, struct
def frame(header, *blobs):
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    os.write(11, struct.pack("<I", len(text)) + text + b"".join(blobs))
"""


@pytest.mark.parametrize(
    "forged",
    [
        {"from": "worker", "end": "worker"},
        {"from": "worker", "end": "done"},
        {"from": "worker", "body": {"number": 0, "values": [{"value": 42}]}},
        {"number": 0, "fault": {"kind": "broken", "message": "the grader failed"}},
        {"end": "worker"},
        {"started": False},
        {"loaded": True, "faults": [{"chunk": "x", "line": 1, "message": "forged"}]},
        {"number": 5, "values": [{"value": 42}]},
    ],
)
def test_a_forged_answer_cannot_claim_a_fault_of_the_grader(workers: Workers, forged: dict) -> None:
    text = f"{FORGE}\ndef a():\n    frame({forged!r})\n    return 1\ndef b(): return 2\n"
    for finding in findings(workers, text, cases("a"), cases("b")):
        kind = finding.kind if isinstance(finding, Fault) else values(finding)
        assert kind in ("raised", "crashed", "refused", [1], [2])


def test_a_forged_note_contains_no_hidden_case(workers: Workers) -> None:
    """The code forges a note about the loading of its file that shows the arguments of a hidden case."""
    text = """
import json, os, struct
def send(header):
    data = json.dumps({**header, "blobs": []}).encode()
    os.write(11, struct.pack("<I", len(data)) + data)
def shown(n): return n
def hidden(n):
    told = {"chunk": "a.py", "line": 1, "message": f"hidden: {n}", "kind": "raised"}
    send({"number": 1, "values": [{"value": n}], "loaded": True, "faults": [told]})
    return n
send({"started": True, "loaded": True})
"""
    asks = [cases("shown", {"n": 1}), replace(cases("hidden", {"n": 41}), hidden_inputs=True)]
    answered, notes = collect(workers, source(text), asks)
    assert [values(held(a.finding)) for a in answered] == [[1], [41]]
    assert not notes


def test_a_forged_answer_shifts_no_other_answer(workers: Workers) -> None:
    """The grader takes the forged answer as the answer to the ask that runs. The next ask gets its own answer."""
    forged = {"number": 0, "values": [{"value": 7}]}
    text = f"{FORGE}\ndef a():\n    frame({forged!r})\n    return 1\ndef b(): return 2\n"
    first, second = findings(workers, text, cases("a"), cases("b"))
    assert values(first) == [7] and values(second) == [2]


def test_unreadable_bytes_on_the_pipe_are_the_learners_fault(workers: Workers) -> None:
    text = "import os\ndef a():\n    os.write(11, b'\\x04\\0\\0\\0abcd')\n    os._exit(0)\ndef b(): return 2\n"
    first, second = findings(workers, text, cases("a"), cases("b"))
    assert first == Fault("crashed", "it ended the process: the process sent back unreadable bytes")
    assert values(second) == [2]


def test_a_program_that_was_not_traced_is_refused(workers: Workers) -> None:
    text = f"{FORGE}\ndef f(a, *, mesh):\n    frame({{'number': 0, 'program': True}}, b'no program')\n    return a\n"
    (found,) = findings(workers, text, array())
    assert found == Fault("refused", "the program cannot be read")


# -- single replies ----------------------------------------------------------------------------


def test_a_forged_answer_in_words_is_cut() -> None:
    """The learner's process cuts a text too, but learner code may send any frame."""
    ask = Ask(Question("why", "Why?", lambda: "because", 1, Written("a reason")))
    assert replies.plain_values(ask, {"raw": "x" * 9999}).outcomes == [Outcome(value="x" * MAX_TEXT)]
    assert replies.plain_values(ask, {"raw": ["x" * 9999]}).outcomes == [Outcome(value=["x" * MAX_TEXT])]


@pytest.mark.parametrize(
    ("ask", "body"),
    [
        (cases("a"), {}),
        (cases("a"), {"values": []}),
        (cases("a"), {"values": [{"value": 1}] * 2}),
        (cases("a"), {"values": {"value": 1}}),
        (cases("a"), {"values": [3]}),
        (cases("a"), {"values": [{}]}),
        (cases("a"), {"values": [{"value": {"list": [1], "tuple": [2]}}]}),
        (cases("a"), {"raw": 1}),
        (cases("a"), {"program": True}),
        (question("q"), {"values": [{"value": 1}]}),
    ],
)
def test_an_answer_of_the_wrong_kind_is_refused(ask: Ask, body: dict) -> None:
    assert replies.plain_values(ask, body).fault == Fault(
        "refused", "the process that runs the submission sent a reply of the wrong kind"
    )


def test_a_fault_from_a_child_keeps_plain_fields_and_is_never_broken() -> None:
    claimed = {"kind": "broken", "message": "m" * 999, "line": "7", "file": 3, "type": None}
    fault = replies.fault_of(claimed)
    assert (fault.kind, fault.message, fault.line, fault.file) == ("raised", "m" * 700, None, "3")
    assert replies.fault_of("broken") == Fault("raised", "failed")
    assert replies.fault_of({"kind": "timeout", "message": "x", "line": 3}) == Fault("timeout", "x", 3)


def test_a_fault_has_one_of_the_known_kinds() -> None:
    assert replies.fault_of({"kind": "passed", "message": "x"}).kind == "raised"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"error": "E", "kinds": ["E", "ValueError"], "message": "m", "line": 3}, Outcome(None, "E", ("E", "ValueError"), "m", 3)),
        ({"error": 3, "kinds": "ValueError", "message": 4, "line": True}, Outcome(None, "3", (), "4", None)),
        ({"error": "E" * 999, "kinds": ["k" * 999] * 99, "message": "m" * 999}, Outcome(None, "E" * 100, ("k" * 100,) * 20, "m" * 300, None)),
    ],
)  # fmt: skip
def test_a_long_or_malformed_error_is_cut(error: dict, outcome: Outcome) -> None:
    assert replies.plain_values(cases("a"), {"values": [error]}).outcomes == [outcome]


def run_result(**changed: Any) -> RunResult:
    slices = [[[2 * i, 2 * i + 2], [0, 4]] for i in range(4)]
    header = {
        "outputs": [[{"shape": [8, 4], "dtype": "float32", "slices": slices}]], "program": "0",
        "collectives": [{"kind": "permute", "axes": ["x"], "bytes": 8, "sent": 8}], "memory": 1, "flops": 2, "dot_flops": 2, "mapped": True,
        "operations": None,
    }  # fmt: skip
    return RunResult(header | changed, [bytes(32)] * 4)


def test_a_runners_reply_becomes_an_observation() -> None:
    found = replies.observed(array(), run_result()).observation
    assert found is not None
    assert found.outputs[0][0].spec == ("x",) and found.collectives[0].axes == ("x",) and found.flops == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"outputs": []},
        {"outputs": [[{"shape": [8, 4], "dtype": "float32", "slices": [[[0, 2], [0, 4]]]}]]},
        {"outputs": [[{"shape": [8, 4], "dtype": "float64", "slices": [[[0, 2], [0, 4]]] * 4}]]},
        {"outputs": [[{"shape": [8, 4], "dtype": "object", "slices": [[[0, 2], [0, 4]]] * 4}]]},
        {"outputs": [[{"shape": [8, 4], "dtype": "float32", "slices": []}]]},
        {"outputs": [[{}]]},
        {"collectives": [{"axes": 3}]},
        {"memory": "much"},
        {"flops": None},
    ],
)
def test_an_observation_that_does_not_fit_is_the_graders_fault(changed: dict) -> None:
    """Observations come from the runner, where no learner's Python runs."""
    found = replies.observed(array(), run_result(**changed)).fault
    assert found is not None and found.kind == "broken"
    assert found.message.startswith("the grader cannot read the result that its own process sent: ")


def test_an_error_in_the_runners_code_is_the_graders_fault() -> None:
    found = replies.observed(array(), RunResult({"broken": "KeyError: 'x'"})).fault
    assert found == Fault("broken", "the grader failed while it ran this program: KeyError: 'x'")


@pytest.mark.parametrize("given", [0, 1])
def test_missing_gradients_are_refused(given: int) -> None:
    """Forged bytecode may lack gradients. This must not stop the judgement of the submission's other checks."""
    call = Call(Task("f", "array", unused), {"a": A, "b": A}, {}, ({"x": 4},), {}, {}, wrt=("a", "b"), cotangent=A)
    ask = Ask(call, {"x": 4}, {}, [{name: A.sample({}, rng("s", name)) for name in ("a", "b", "cotangent")}])
    ran = run_result()
    outputs = [ran.header["outputs"][0] * given]
    found = replies.observed(ask, RunResult({**ran.header, "outputs": outputs}, [*ran.shards] * given)).fault
    assert found == Fault("refused", "the program does not return the results and gradients of the call")


@pytest.mark.parametrize("body", [{"program": True}, {"values": [{"value": 1}]}])
def test_a_reply_without_a_program_is_refused(body: dict) -> None:
    assert replies.reply_of(array(), body, []).fault == OTHER_KIND


def test_a_reply_that_is_nested_too_deep_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert replies.reply_of(cases("a"), {"values": deep}, []).fault == OTHER_KIND
    assert replies.reply_of(array(), {"values": deep}, [b"program"]).program == b"program"


def died(stderr: str, phase: str = "executing") -> WorkerDied:
    """Return the error of a worker that died on a learner's program but can run the grader's test program."""
    error = WorkerDied("died", stderr, phase)
    error.ours = False
    return error


def waiting(out_of_time: bool = False) -> WorkerDied:
    """Return the error of a worker that reached a time limit after XLA had warned that devices wait."""
    error = WorkerDied("timeout", "E1 rendezvous.cc:31] This thread ... may be stuck")
    error.ours, error.out_of_time = False, out_of_time
    return error


@pytest.mark.parametrize(
    ("died", "kind", "message"),
    [
        (WorkerDied("timeout"), "timeout", "the program did not finish within 30 s, twice"),
        (waiting(), "timeout", "the devices waited for each other without end, "),
        (waiting(out_of_time=True), "timeout", "the program did not finish within 30 s, twice"),
        (died(f"F1 rendezvous.cc:31] {GAVE_UP} `all-reduce` of 40 seconds exceeded."), "timeout", "the devices waited for each other without end, "),
        (died("E1 rendezvous.cc:31] This thread ... may be stuck"), "crashed", "XLA ended the process twice while running this program"),
        (WorkerDied("died", f"{GAVE_UP} `all-reduce`"), "broken", "XLA ended the process twice while running this program"),
        (died("Check failed: a == b"), "crashed", "XLA ended the process twice while running this program: Check failed: a == b"),
        (died("", "asked"), "crashed", "XLA ended the process twice while reading this program"),
        (WorkerDied("died"), "broken", "XLA ended the process twice while running this program; a test program of the grader fails too, so the fault is the grader's"),
    ],
)  # fmt: skip
def test_the_reason_why_a_program_did_not_run_is_reported(died: WorkerDied, kind: str, message: str) -> None:
    fault = replies.run_fault(died, 30)
    assert fault.kind == kind and fault.message.startswith(message)


@pytest.mark.parametrize("how", ["disk", "flood", "garbage", "silent", "threads", "died of signal 9"])
def test_the_fault_of_a_child_that_ended_says_what_the_code_did(how: str) -> None:
    assert replies.ended_fault(how, "it", 2).message.startswith("it ended the process: the process ")


def test_a_tracer_that_dies_is_the_graders_fault() -> None:
    assert replies.ended_fault("worker", "it", 2) == Fault(
        "broken", "the process that traces the code ended twice; a person must review this submission"
    )


# -- in the learner's notebook -----------------------------------------------------------------


def test_in_a_learners_own_notebook_every_limit_is_an_hour() -> None:
    limits = InProcess({}).limits
    assert min(limits.trace_seconds, limits.total_seconds, limits.run_seconds, limits.total_run_seconds) >= 3600


def test_in_process_asks_run_the_notebooks_own_functions(devices: int) -> None:
    space: dict[str, Any] = {"q": 3}
    exec(compile("def f(a, *, mesh):\n    return a * 2\ndef g(n):\n    return 1 / n\n", "cell", "exec"), space)
    ask = array()
    answered, notes = collect(InProcess(space), Source("this notebook", ()), [ask, cases("g", {"n": 0}), question("q")])
    seen, failed, answer = (held(a.finding) for a in answered)
    assert isinstance(seen, Observation) and (seen.outputs[0][0].value == ask.inputs[0]["a"] * 2).all()
    assert isinstance(failed, list) and (failed[0].error, failed[0].line) == ("ZeroDivisionError", 4)
    assert values(answer) == [3] and notes == []


def test_a_function_that_the_notebook_lacks_is_missing(devices: int) -> None:
    ((answered,), _) = collect(InProcess({}), Source("this notebook", ()), [array("g")])
    assert answered.finding.fault == Fault("missing", "g is not defined")


def test_in_process_reads_a_file_as_workers_do(devices: int, workers: Workers) -> None:
    text = "def f(a, *, mesh):\n    return a + undefined\ndef g(n):\n    raise KeyError(n)\n"
    asks = [array(), cases("g", {"n": 1}), cases("h")]
    assert findings(InProcess({}), text, *asks) == findings(workers, text, *asks)


# -- the process that runs programs ------------------------------------------------------------


def test_the_runner_gets_no_source_code(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets a program, an ask and inputs, but no Python that it could execute."""
    worker, sent = workers.runners[0].worker, []
    write = worker.send
    monkeypatch.setattr(worker, "send", lambda data: (sent.append(data), write(data)))
    (seen,) = findings(workers, "MARKER = 'of the source'\ndef f(a, *, mesh):\n    return a * 3  # MARKER\n", array())
    assert isinstance(seen, Observation)
    assert len(sent) == 1 and b"ML\xefR" in sent[0] and b"MARKER" not in sent[0] and b"of the source" not in sent[0]


def test_all_programs_of_a_submission_share_one_time_limit(workers: Workers) -> None:
    """A program after the limit is not run, and its fault says so."""
    runs = ProgramRuns(workers, [], Cost(workers.limits, running=workers.limits.total_run_seconds + 1))
    one, another = array(), array("g")
    over = Finding(fault=Fault("timeout", "all programs together did not finish within 180 s"))
    assert runs.findings([one, another], Reply(program=b"no program")) == {one: over, another: over}


def test_a_program_whose_devices_wait_counts_towards_the_limit(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices that wait use no CPU time, so each such program counts as one that reached its time limit."""

    def stuck(*about: object) -> RunResult:
        raise died(GAVE_UP)

    monkeypatch.setattr(workers, "run", stuck)
    cost = Cost(workers.limits)
    ProgramRuns(workers, [], cost).findings([array()], Reply(program=b"a program"))
    assert cost.running == workers.limits.run_seconds


def test_a_program_that_crashes_is_not_run_on_other_meshes(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def crashes(*about: object) -> RunResult:
        tried.append(about)
        raise died("Check failed: a == b")

    monkeypatch.setattr(workers, "run", crashes)
    runs = ProgramRuns(workers, [], Cost(workers.limits))
    one, other = array(), array()
    asks = [replace(one, mesh={"x": n}) for n in (1, 2, 4)]
    found = [runs.findings([ask], Reply(program=b"a program"))[ask].fault for ask in asks]
    assert len(tried) == 1 and found == [replies.run_fault(died("Check failed: a == b"), 30)] * 3
    runs.findings([other], Reply(program=b"a program"))
    assert len(tried) == 2, "another call of the task, for example with gradients, is run"


def test_workers_use_the_limits_of_the_course(workers: Workers, impatient: Workers) -> None:
    assert (workers.limits.trace_seconds, impatient.limits.trace_seconds) == (20, 1)


# -- size of the source ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "#" + "é" * (MAX_FILE // 2),
        "#" + "\x01" * MAX_FILE,
        "#" + "\U0001d54f" * (MAX_FILE // 4),
        '"""' + '"\\\n' * 500_000,
    ],
    ids=["two bytes", "control characters", "four bytes", "quotes"],
)
def test_any_text_within_the_limit_reaches_the_child(workers: Workers, text: str) -> None:
    """As JSON, the text could be six times as large and exceed the limit of a header."""
    (found,) = findings(workers, f"def f(n):\n    return n\n{text}", cases("f", {"n": 3}))
    assert values(found) == [3] if text[0] == "#" else isinstance(found, Fault) and found.kind != "broken"


def test_many_cells_reach_the_child(workers: Workers) -> None:
    cells = source("def f(n):\n    return n + a\n", *["a = 1"] * 4_000)
    asks = [cases("f", {"n": n}) for n in range(200)]
    answered, _ = collect(workers, cells, asks)
    assert len(answered) == len(asks)
    assert all(values(held(a.finding)) == [a.ask.cases[0]["n"] + 1] for a in answered)

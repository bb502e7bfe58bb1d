"""Look for unknown attacks: ``python -m tests.search --minutes N --seed S``.

There are two generators. With an equal seed they repeat their tries. ``programs`` changes the traced programs of
honest and wrong submissions, as text or as bytes, and runs them as if the tracer had sent them. ``patches`` adds code
to an honest or a wrong solution that replaces a public name in JAX or in Python's library.

These rules must hold: wrong submissions gain no points, the reports of other submissions do not change by a byte, no
result is ``broken``, and the workers continue. The grader's facts of each program must include the counts of the
interpreter (``tests.interpreter``).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import itertools
import math
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from grader.batch.cost import Cost
from grader.batch.grade import Grader
from grader.batch.replies import Reply
from grader.batch.running import ProgramRuns
from grader.batch.workers import Workers
from grader.common.intervals import Interval
from grader.common.observation import Observation, total
from grader.course.loading import load_course
from grader.exercise import Call
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.judge import judge_checks
from grader.judging.seen import AskFinding
from grader.runner.program import canonical
from grader.sandbox.tiers import best_tier
from grader.wire.messages import SourceCode
from tests import interpreter

COURSE = Path(__file__).resolve().parent / "submissions" / "hostile_course"
NAME = "h1_total"
HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax.sharding import PartitionSpec as P\n\n\n"
MAPPED = "def total(a, *, mesh):\n    return jax.shard_map({body}, mesh=mesh, in_specs=P('x'), out_specs=P({out}))(a)\n"
HONEST = {
    "psum": MAPPED.format(body="lambda a: jax.lax.psum(a.sum(0), 'x')", out=""),
    "loop": MAPPED.format(
        body="lambda a: jax.lax.psum(jax.lax.fori_loop(0, a.shape[0], lambda i, t: t + a[i], 0 * a[0]), 'x')", out=""
    ),
}
# Wrong programs. No small change makes them right. Each has an operation on which the grader's facts depend.
WRONG = {
    "part": MAPPED.format(body="lambda a: (a * a + 3).sum(0)", out="'x'"),
    "gathered": MAPPED.format(body="lambda a: jax.lax.psum(jax.lax.all_gather(a, 'x').cumsum(0)[0, 0] * 7, 'x')", out=""),
    "branch": MAPPED.format(
        body="lambda a: jax.lax.cond(a[0, 0] > 1e30, lambda v: jax.lax.psum(v.sum(0), 'x'),"
        " lambda v: jax.lax.psum(v[0] * 0, 'x') + 5, a)", out=""),
    "ring": MAPPED.format(
        body="lambda a: jax.lax.psum(jax.lax.fori_loop(0, 3, lambda i, v: jax.lax.ppermute(v, 'x',"
        " [(k, (k + 1) % 4) for k in range(4)]) * 2, a)[0], 'x')", out=""),
}  # fmt: skip
OTHERS = "\n\ndef twice(n):\n    return {twice}\n\n\nmegabytes = {megabytes}\n"
HONEST_OTHERS = OTHERS.format(twice="2 * n", megabytes=10)
WRONG_OTHERS = OTHERS.format(twice="7 - n % 3", megabytes=7)
FULL = 5.0
LOOK_AFTER = 25  # number of tries after which an honest submission is checked again


@dataclass
class Found:
    """Numbers of tries, and the findings.

    Attributes:
        tried: number of tries, by kind.
        ran: number of changed programs that ran.
        counted: number of changed programs that the interpreter also ran.
        wrong: the findings: kind and number of the try, what was wrong, and the change or patch.
    """

    tried: dict[str, int] = field(default_factory=dict)
    ran: int = 0
    counted: int = 0
    wrong: list[tuple[str, int, str, str]] = field(default_factory=list)

    def note(self, kind: str, number: int, what: str, how: str) -> None:
        self.wrong.append((kind, number, what, how))

    def __str__(self) -> str:
        tried = ", ".join(f"{n} {kind}" for kind, n in self.tried.items())
        lines = [f"tried {tried}; {self.ran} of the programs ran, {self.counted} were counted; found {len(self.wrong)}"]
        return "\n".join([*lines, *(f"- {kind} {number}: {what}\n{how}" for kind, number, what, how in self.wrong)])


def search(seed: int, *, minutes: float = math.inf, most: int | None = None, kinds: str = "programs patches") -> Found:
    """Try for ``minutes``, or until each kind had ``most`` tries."""
    found = Found()
    until = time.monotonic() + 60 * minutes
    course = load_course(COURSE / "course.yaml")
    with Grader(course, best_tier("auto"), 1) as grader:
        tries = [one(grader, random.Random(f"{seed} {one.__name__}"), found) for one in (programs, patches)
                 if one.__name__ in kinds]  # fmt: skip
        for _ in itertools.count() if most is None else range(most):
            if time.monotonic() > until:
                break
            for one in tries:
                next(one)
    return found


def submission(student: str, text: str) -> Submission:
    return Submission(student, {NAME: Source(f"{NAME}.py", (Chunk(f"{NAME}.py", text),))}, (), text)


# -- Python ------------------------------------------------------------------------------------

OWNERS = (
    "jax", "jax.numpy", "jax.lax", "jax.sharding", "jax.export", "jax.core", "jax.stages", "jax.tree", "jax.tree_util", "jax.debug",
    "jax.dtypes", "jax.nn", "jax.scipy.linalg", "jaxlib.mlir.passmanager", "jax.interpreters.mlir", "jax.interpreters.partial_eval", "jax.extend.core", "jaxlib.mlir.ir",
    "jaxlib.mlir.dialects.func", "jaxlib.mlir.dialects.stablehlo", "jaxlib.mlir.dialects.sdy", "jax.errors", "jax.random",
    "numpy", "builtins", "io", "os", "sys", "json", "struct", "signal", "types", "ast", "linecache", "contextlib",
    "traceback", "math", "re", "difflib", "functools", "fractions", "decimal", "time", "gc", "threading", "inspect",
)  # fmt: skip
# Texts that replace a name. In them, ``was`` is the original function.
STAND_INS = {
    "gives zeros": "lambda *a, **k: jnp.zeros(getattr(a[0], 'shape', ())) if a else 0",
    "gives its argument": "lambda *a, **k: a[0] if a else None",
    "gives its last argument": "lambda *a, **k: [*a, *k.values(), None][-1 - (not a and not k)] if a or k else None",
    "raises": "lambda *a, **k: 1 / 0",
    "leaves": "lambda *a, **k: __import__('os')._exit(0)",
    "gives nothing": "None",
    "gives a number": "lambda *a, **k: 4",
    "gives text": "lambda *a, **k: 'x'",
    "gives bytes": "lambda *a, **k: b'ML\\xefR'",
    "gives itself": "lambda *a, **k: stand_in",
    "runs twice": "lambda *a, **k: (was(*a, **k), was(*a, **k))[1]",
    "gives a list": "lambda *a, **k: [was(*a, **k)]",
    "forgets options": "lambda *a, **k: was(*a)",
    "says yes": "type('Yes', (), {'__eq__': lambda *a: True, '__hash__': lambda s: 0, '__call__': lambda s, *a, **k: s, '__getattr__': lambda s, n: s, '__len__': lambda s: 4, '__iter__': lambda s: iter([s])})()",
    "is kept": "lambda *a, **k: (kept.append(1), was(*a, **k) if len(kept) < 40 else None)[1]",
}  # fmt: skip
PATCH = """
import importlib
kept = []
def patch():
    global was, stand_in
    owner = importlib.import_module({module!r})
    for part in {path!r}:
        owner = getattr(owner, part)
    was = getattr(owner, {name!r})
    stand_in = {stand_in}
    setattr(owner, {name!r}, stand_in)
"""


@cache
def names() -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Return (module, path, name) of each name to patch: public attributes of modules, methods of JAX's classes."""
    found: dict[int | tuple, tuple[str, tuple[str, ...], str]] = {}
    for module in OWNERS:
        owner = importlib.import_module(module)
        for name in sorted(n for n in dir(owner) if not n.startswith("_")):
            with contextlib.suppress(AttributeError):
                thing = getattr(owner, name)
                found.setdefault((module, name), (module, (), name))
                if inspect.isclass(thing) and module.startswith("jax") and (thing.__module__ or "").startswith("jax"):
                    own = [n for n in vars(thing) if not n.startswith("_") or n in ("__init__", "__call__", "__eq__")]
                    for method in sorted(own):
                        found.setdefault((id(thing), method), (module, (name,), method))
    return tuple(found.values())


def patches(grader: Grader, pick: random.Random, found: Found) -> Iterator[None]:
    """Grade honest and wrong solutions that replace one name, while the file loads or while the function is traced."""
    alone = [grader.grade(submission("honest", HEAD + HONEST[name] + HONEST_OTHERS), [NAME]) for name in HONEST]
    if [report.earned for report in alone] != [FULL] * len(alone):
        raise RuntimeError(f"honest work earns {[report.earned for report in alone]}")
    tried = 0
    left: list[tuple[str, tuple[str, ...], str]] = []
    while True:
        left = left or pick.sample(names(), len(names()))  # try each name once
        module, path, name = left.pop()
        what = pick.choice(list(STAND_INS))
        good, late = pick.random() < 0.3, pick.random() < 0.5
        base = pick.choice(list((HONEST if good else WRONG).values()))
        patch = PATCH.format(module=module, path=path, name=name, stand_in=STAND_INS[what])
        if late:
            text = HEAD + patch + base.replace("mesh):\n", "mesh):\n    patch()\n")
        else:
            text = HEAD + patch + "patch()\n\n\n" + base
        text += HONEST_OTHERS if good else WRONG_OTHERS
        tried += 1
        found.tried["patches"] = tried

        def wrong(what: str, text: str = text, tried: int = tried) -> None:
            found.note("patches", tried, what, text)

        try:
            report = grader.grade(submission("attacker", text), [NAME])
        except Exception as error:
            wrong(f"the grader raised {type(error).__name__}: {error}")
        else:
            if report.pending:
                wrong(f"pending: {[r.reason for r in report.exercises[0].results if r.status == 'broken']}")
            if report.earned > (FULL if good else 0):
                wrong(f"{report.earned:g} points")
            if "canary" in report.model_dump_json():
                wrong("the report shows hidden data")
        if tried % LOOK_AFTER == 0:
            which = pick.randrange(len(alone))
            again = grader.grade(submission("honest", HEAD + list(HONEST.values())[which] + HONEST_OTHERS), [NAME])
            if again.model_dump_json() != alone[which].model_dump_json():
                wrong("an honest submission has a different report after this submission or an earlier one")
        yield


# -- programs ----------------------------------------------------------------------------------


def programs(grader: Grader, pick: random.Random, found: Found) -> Iterator[None]:
    """Change traced programs of honest and wrong submissions, run them, and judge the results."""
    workers = grader.worker_sets[0]
    exercise = grader.course.exercise(NAME)
    asks = [a for a in grader.plan(NAME, public=False) if isinstance(a.of, Call)]
    (first, *_), files = [a for a in asks if not a.hidden_inputs and a.dims == asks[-1].dims], [f"{NAME}.py"]
    ours = [a for a in asks if a.program_key == first.program_key]  # the same program on public and on hidden inputs
    bases = {n: traced(workers, first, HEAD + t, files) for n, t in (HONEST | WRONG).items()}

    def findings(code: bytes) -> dict[Any, Any]:
        return ProgramRuns(workers, files, Cost(workers.limits)).findings(ours, Reply(program=code))

    alone = {name: findings(bases[name]) for name in HONEST}
    tried = 0
    while True:
        name = pick.choice(list(bases))
        code, how = changed(bases[name], pick, list(bases.values()))
        tried += 1
        found.tried["programs"] = tried

        def wrong(what: str, how: str = f"{name}: {how}", tried: int = tried) -> None:
            found.note("programs", tried, what, how)

        try:
            seen = findings(code)
            value, traffic, *_ = judge_checks(exercise, [AskFinding(a, seen[a]) for a in ours], public=False)
        except Exception as error:
            wrong(f"the grader raised {type(error).__name__}: {error}")
        else:
            if "broken" in (value.status, traffic.status):
                wrong(f"broken: {value.reason} {traffic.reason}")
            if value.status == "passed" and name in WRONG:
                wrong("wrong work is right")
            if ran := seen[first].observation:
                found.ran += 1
                for one in miscounted(code, first, ran, found):
                    wrong(one)
        if tried % LOOK_AFTER == 0:
            which = pick.choice(list(HONEST))
            again = findings(bases[which])
            if repr(again) != repr(alone[which]):
                wrong("an honest program does something else after this one or one of those before it")
        yield


def traced(workers: Workers, ask: Any, text: str, files: list[str]) -> bytes:
    """Return the program that the tracer makes of a submission's text."""
    source: SourceCode = {"name": files[0], "chunks": [[files[0], text]]}
    frames = list(workers.tracer.trace(source, [ask.for_tracer(files)], []))
    return next(blobs[0] for frame, blobs in frames if frame.get("body", {}).get("program"))


def miscounted(code: bytes, ask: Any, seen: Observation, found: Found) -> Iterator[str]:
    """Run a program in the interpreter. Yield one line for each difference from the observed results and facts."""
    about = ask.for_tracer([])
    arrays = [np.asarray(v) for v in ask.inputs[0].values()]
    try:
        module = canonical(code, ask.mesh, about["args"], set()).parse()
        with module.context, np.errstate(all="ignore"):
            results, counts = interpreter.run(module, ask.mesh, arrays)
    except Exception:  # the interpreter supports only shard_map over all axes
        return
    found.counted += 1
    for interpreted, output in zip(results, seen.outputs[0], strict=True):
        copies = dict(zip(output.slices, output.shards, strict=True))
        if any(not np.array_equal(s, copies[w]) for w, s in zip(output.slices, output.shards, strict=True)):
            continue  # out_specs says that shards are equal, but they differ, so the result is undefined
        for held, shard, where in zip(interpreted, output.shards, output.slices, strict=True):
            value = np.asarray(held)
            part = value[tuple(slice(*w) for w in where)] if value.shape == output.shape else None
            if part is not None and shard.dtype == np.float32 and not np.allclose(part, shard, 1e-2, 1e-2, True):
                yield f"it comes to {shard.ravel()[:4]}, but should to {part.ravel()[:4]}"
                return
    kinds = {c.kind for c in seen.collectives} | {k for ran in counts.ran for k in ran}
    for kind in sorted(kinds):
        written = [c for c in seen.collectives if c.kind == kind and not c.by_compiler]
        counted = total(written, lambda c: Interval.of(1)) if written else Interval.of(0)
        for device, ran in enumerate(counts.ran):
            if not counted.least <= ran[kind] <= counted.most:
                yield f"device {device} ran {ran[kind]} {kind}, but facts say {counted}"


# -- changes -----------------------------------------------------------------------------------

Change = Callable[[str, random.Random], str]


def changed(code: bytes, pick: random.Random, all_of_them: list[bytes]) -> tuple[bytes, str]:
    """Change a program at random, as text that MLIR accepts or as bytes. Return the new program and the change."""
    if pick.random() < 0.15:
        return garbled(code, pick, all_of_them)
    text = written(code, generic=pick.random() < 0.6)
    for _ in range(200):
        new, how = text, []
        for _ in range(pick.choice([1, 1, 1, 2, 2, 3])):
            change = pick.choice(CHANGES)
            new = change(new, pick)
            how.append(change.__name__)
        if new != text and (made := bytecode(new)) is not None:
            return made, f"{', '.join(how)}\n{new}"
    return garbled(code, pick, all_of_them)


def garbled(code: bytes, pick: random.Random, all_of_them: list[bytes]) -> tuple[bytes, str]:
    data = bytearray(code)
    how = pick.choice(["bits", "cut", "joined", "doubled", "words"])
    at = pick.randrange(4, len(data))
    if how == "bits":
        for _ in range(pick.choice([1, 1, 2, 8])):
            data[pick.randrange(4, len(data))] ^= 1 << pick.randrange(8)
    elif how == "cut":
        del data[at : at + pick.choice([1, 2, 8, len(data)])]
    elif how == "joined":
        data[at:] = pick.choice(all_of_them)[at:]
    elif how == "doubled":
        data[at:at] = data[at : at + pick.randrange(1, 40)]
    else:
        words = [m.span() for m in re.finditer(rb"[A-Za-z_.]{3,}", data)]
        (a, b), (c, d) = pick.choice(words), pick.choice(words)
        data[a:b] = data[c:d]
    return bytes(data), f"{how}\n{bytes(data).hex()}"


def _context() -> Any:
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo  # noqa: F401

    context = make_ir_context()
    context.allow_unregistered_dialects = True
    context.emit_error_diagnostics = True  # without this setting, an MLIR message with invalid text ends this process
    return context


def written(code: bytes, *, generic: bool) -> str:
    from jaxlib.mlir import ir

    return str(ir.Module.parse(code, _context()).operation.get_asm(print_generic_op_form=generic))


def bytecode(text: str) -> bytes | None:
    """Return the bytecode of a module, or None if the text is no module."""
    from jaxlib.mlir import ir

    code = io.BytesIO()
    try:
        ir.Module.parse(text, _context()).operation.write_bytecode(code)
    except Exception:
        return None
    return code.getvalue() if len(code.getvalue()) < 1 << 20 else None


def _swap(text: str, pick: random.Random, pattern: str, choices: Callable[[str], Any]) -> str:
    """Find a random match of a pattern, and replace it with one of ``choices``."""
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = pick.choice(places)
    return text[: place.start()] + str(pick.choice(list(choices(place[0])))) + text[place.end() :]


def _operations(text: str) -> list[int]:
    return [i for i, line in enumerate(text.split("\n")) if re.match(r'\s+(%\S+ = )?"?(stablehlo|sdy|func|chlo)', line)]


def delete_a_line(text: str, pick: random.Random) -> str:
    lines = text.split("\n")
    del lines[pick.choice(_operations(text) or [0])]
    return "\n".join(lines)


def double_a_line(text: str, pick: random.Random) -> str:
    lines = text.split("\n")
    at = pick.choice(_operations(text) or [0])
    lines[at:at] = [re.sub(r"^(\s+)%[\w:]+ =", r"\1%again =", lines[at])]
    return "\n".join(lines)


def swap_two_lines(text: str, pick: random.Random) -> str:
    lines, ops = text.split("\n"), _operations(text)
    if len(ops) > 1:
        a, b = pick.sample(ops, 2)
        lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def use_another_value(text: str, pick: random.Random) -> str:
    values = sorted(set(re.findall(r"%\w+(?:#\d)?", text)))
    return _swap(text, pick, r"%\w+(?:#\d)?(?! =)", lambda _: values)


def another_number(text: str, pick: random.Random) -> str:
    near = (-1, 0, 1, 2, 3, 4, 7, 8, 255, 2**31 - 1, -(2**31), 2**63 - 1, 12, 10, 3_000_000_000)
    return _swap(text, pick, r"(?<![\w%@])-?\d+(?![\w.])", lambda was: [*near, int(was) + 1, int(was) - 1])


def another_float(text: str, pick: random.Random) -> str:
    return _swap(
        text, pick, r"\d\.\d+[eE][+-]\d+", lambda _: ["0x7FC00000", "0x7F800000", "-0.0", "1.0e38", "1.0e-45", "2.5"]
    )


TYPES = ("f32", "f64", "f16", "bf16", "i1", "i4", "ui2", "i8", "ui8", "i32", "ui32", "i64", "f8E5M2", "f8E4M3FN", "f4E2M1FN", "f8E8M0FNU", "complex<f32>", "index", "none", "tf32")  # fmt: skip


def another_type(text: str, pick: random.Random) -> str:
    pattern = r"(?<=[x<])(?:f32|i32|i1|i64)(?=>)"
    if pick.random() < 0.5:
        return _swap(text, pick, pattern, lambda _: TYPES)
    new = pick.choice(TYPES)
    return re.sub(r"(?<=[x<])f32(?=>)", new, text)


def convert_the_result(text: str, pick: random.Random) -> str:
    """Convert main's result to another type."""
    found = re.search(r"( +)return (%\S+) : (tensor<\d+x)f32>", text)
    if found is None:
        return text
    new = pick.choice(TYPES)
    line = f"{found[1]}%converted = stablehlo.convert {found[2]} : ({found[3]}f32>) -> {found[3]}{new}>\n"
    text = (
        text[: found.start()]
        + line
        + found[0].replace(found[2], "%converted").replace("f32>", f"{new}>")
        + text[found.end() :]
    )
    return re.sub(r"(@main\(.*-> \(?tensor<\d+x)f32>", rf"\g<1>{new}>", text, count=1)


SAME_SHAPE = [
    *["abs", "ceil", "cosine", "exponential", "floor", "log", "log_plus_one", "logistic", "negate", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh", "cbrt", "not", "real", "imag"],
    *["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "atan2", "and", "or", "xor"],
    *["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast"],
    *["optimization_barrier", "reduce_precision", "reverse", "sort", "reduce", "case", "while", "custom_call", "infeed", "outfeed", "rng", "partition_id"],
]  # fmt: skip


def another_operation(text: str, pick: random.Random) -> str:
    return _swap(text, pick, r"(?<=stablehlo\.)\w+", lambda _: SAME_SHAPE)


def another_word(text: str, pick: random.Random) -> str:
    words = re.findall(r"[\w.]{2,}", text)
    return _swap(text, pick, r"[\w.]{2,}", lambda _: words)


def drop_an_attribute(text: str, pick: random.Random) -> str:
    return _swap(text, pick, r"\w+ = [^,{}<>]+(<[^>{}]*>)?( : [\w<>]+)?,? ?|, \w+(?=[,}>])", lambda _: [""])


GROUPS = (
    "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", "dense<[[0], [1], [2], [3]]> : tensor<4x1xi64>",
    "dense<[[0, 1]]> : tensor<1x2xi64>", "dense<[[3, 2, 1, 0]]> : tensor<1x4xi64>", "dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>",
    "dense<> : tensor<0x0xi64>", "dense<0> : tensor<1x4xi64>", "dense<[[0, 1, 2, 9]]> : tensor<1x4xi64>", "dense<> : tensor<0x2xi64>",
    "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>", "dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>", "dense<[[0, -1]]> : tensor<1x2xi64>",
)  # fmt: skip


def other_groups(text: str, pick: random.Random) -> str:
    return _swap(text, pick, r"dense<\[\[.*?\]\]> : tensor<\d+x\d+xi64>", lambda _: GROUPS)


AXES = ('{}', '{"x"}', '{?}', '{"x", ?}', '{"y"}', '{"x":(1)2}', '{"x":(2)2}', '{"x", "x"}', '{"x"}p0')  # fmt: skip


UNREDUCED = (
    ', unreduced={"x"}]>',
    '], unreduced={"x"}>',
    '], replicated={"x"}, unreduced={"y"}>',
    '], replicated={"x"}>',
)


def other_shardings(text: str, pick: random.Random) -> str:
    if pick.random() < 0.3:
        return _swap(text, pick, r"(?<=\})\]>", lambda _: UNREDUCED)
    return _swap(text, pick, r'\{(?:"x")?(?:, \?|\?)?\}(?=[,\]])', lambda _: AXES)


def other_notes(text: str, pick: random.Random) -> str:
    note = pick.choice([
        'mhlo.sharding = "{replicated}"', 'mhlo.frontend_attributes = {xla.sdy.sharding = "x"}', "tf.aliasing_output = 0 : i32",
        'mhlo.memory_kind = "pinned_host"', 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>', "sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>",
        'execution_thread = "host"', "sym_name = \"main\"", 'stablehlo.mesh = {axes = []}', "xla.anything = unit", 'backend_config = "x"',
    ])  # fmt: skip
    return _swap(text, pick, r"\{(?=[a-z_.]+ = |\})", lambda _: [f"{{{note}, ", f"{{{note}"])


SYMBOLS = ("main", "mesh", "f0", "_0", "shmap_body", "xla.sdy.inlinable_manual_computation_body", '"a b"', '"\\22x\\22"', '"by_hand_0_"', '"\\FF"', "program", '"x>}\\0A"', '"mesh, [{}]>, xla.other = #sdy.sharding<@mesh"')  # fmt: skip


def rename_a_symbol(text: str, pick: random.Random) -> str:
    symbols = sorted(set(re.findall(r'@"[^"]*"|@[\w.$]+', text)))
    if not symbols:
        return text
    was, new = pick.choice(symbols), pick.choice(SYMBOLS)
    plain = was.strip('@"')
    renamed = re.sub(rf'{re.escape(was)}(?![\w"])', lambda _: f"@{new}", text)
    return renamed.replace(f'sym_name = "{plain}"', "sym_name = " + (new if new.startswith('"') else f'"{new}"'))


def rename_an_axis(text: str, pick: random.Random) -> str:
    return text.replace('"x"', pick.choice(['"y"', '"\\22"', '"by_hand_1_"', '"x\\0A"', '"é"', '""', '"x=4"']))


MORE = (
    'sdy.mesh @other = <["x"=4]>', 'sdy.mesh @other = <["y"=4]>', 'sdy.mesh @other = <["x"=2, "y"=2]>', "sdy.mesh @empty = <[]>",
    'sdy.mesh @other = <["x"=4], device_ids=[3, 2, 1, 0]>', "sdy.mesh @one = <[], device_ids=[2]>", "module { }", "module @m { func.func @main() { return } }",
    "func.func @second() { return }", "func.func private @third() { return }", "func.func private @outside()", "func.func public @main() { return }",
    "func.func private @fourth() { func.call @fourth() : () -> () return }", 'func.func private @five(%a: tensor<4xf32>) { stablehlo.custom_call @x(%a) : (tensor<4xf32>) -> () return }',
    'func.func private @six() { "sdy.sharding_group"() : () -> () return }', '"stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>',
    "func.func private @seven() { %c = stablehlo.constant dense_resource<r> : tensor<4xf32> return }",
)  # fmt: skip


def add_to_the_module(text: str, pick: random.Random) -> str:
    end = text.rstrip().rfind("}")
    return text[:end] + pick.choice(MORE) + "\n" + text[end:]


def wrap_main(text: str, pick: random.Random) -> str:
    """Move main's body to the function ``inner``. Main calls it in a branch, in a loop or beside a composite."""
    found = re.search(r"func\.func public @main\((%\w+): (tensor<\w+>).*?\) -> \(?(tensor<\w+>)", text)
    if found is None or "func.func private @inner" in text:
        return text
    takes, gives = found[2], found[3]
    call = f"func.call @inner(%a) : ({takes}) -> {gives}"
    zeros = f"%z = stablehlo.constant dense<0.0> : {gives}"
    number = f"stablehlo.constant dense<{pick.randrange(-1, 4)}> : tensor<i32>"
    body = pick.choice([
        f'%i = {number} {zeros} %r = "stablehlo.case"(%i) ({{ %c = {call} stablehlo.return %c : {gives} }}, {{ stablehlo.return %z : {gives} }}) : (tensor<i32>) -> {gives}',
        f'%i = {number} {zeros} %r = "stablehlo.case"(%i) ({{ stablehlo.return %z : {gives} }}, {{ %c = {call} stablehlo.return %c : {gives} }}) : (tensor<i32>) -> {gives}',
        f"%s = {number} {zeros} %n:2 = stablehlo.while(%i = %s, %v = %z) : tensor<i32>, {gives} cond {{ %b = {number} %l = stablehlo.compare LT, %i, %b : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %l : tensor<i1> }}"
        f" do {{ %o = {number} %w = stablehlo.add %i, %o : tensor<i32> %c = {call} stablehlo.return %w, %c : tensor<i32>, {gives} }} %r = stablehlo.add %n#1, %z : {gives}",
        f'%c = {call} %r = stablehlo.composite "chlo.erf" %c {{decomposition = @nothing, version = 1 : i32}} : ({gives}) -> {gives}',
        f"%b = {call} %r = func.call @nothing(%b) : ({gives}) -> {gives}",
        f"{call.replace('func', '%b = func', 1)} {zeros} %r = stablehlo.maximum %b, %z : {gives}",
        f'%z = {call} %c = {call} %r, %q = "stablehlo.optimization_barrier"(%c, %z) : ({gives}, {gives}) -> ({gives}, {gives})',
    ])  # fmt: skip
    if "(%a: tensor" not in (
        outer := f"func.func public @main(%a: {takes}) -> {gives} {{ {body} return %r : {gives} }}"
    ):
        return text
    nothing = f"func.func private @nothing(%a: {gives}) -> {gives} {{ return %a : {gives} }}"
    inner = text.replace("func.func public @main(", "func.func private @inner(")
    end = inner.rstrip().rfind("}")
    return inner[:end] + outer + "\n" + nothing + "\n" + inner[end:]


CHANGES: list[Change] = [
    delete_a_line, double_a_line, swap_two_lines, use_another_value, another_number, another_number, another_float, another_type,
    convert_the_result, another_operation, another_word, drop_an_attribute, other_groups, other_shardings, other_notes,
    rename_a_symbol, rename_an_axis, add_to_the_module, wrap_main, wrap_main,
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="programs patches")
    asked = parser.parse_args()
    found = search(asked.seed, minutes=asked.minutes, kinds=asked.kinds)
    print(f"{len(names())} names; {found}")
    raise SystemExit(bool(found.wrong))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()

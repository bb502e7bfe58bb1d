"""L1: checks, misconceptions and alternatives."""

import re
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from grader.exercise import Scenario
from grader.expect import expect_outcomes
from l1_collectives import KINDS, collectives, computations, device_groups, exercise, sent_by_loops, size

HLO = Path(__file__).with_name("hlo")


def text(name):
    return (HLO / f"{name}.txt").read_text()


# -- hidden texts: the real ones, with other names, devices, types and rounds ------------------------------


def renamed(hlo, rng):
    """Change every name, so that no program can read an instruction's kind from its name."""
    names = list(dict.fromkeys(re.findall(r"%([\w.-]+)", hlo)))
    new = {
        name: f"v{number}.{i}" for i, (name, number) in enumerate(zip(names, rng.permutation(len(names)), strict=True))
    }
    return re.sub(r"%([\w.-]+)", lambda name: f"%{new[name[1]]}", hlo)


def moved(hlo, rng):
    """Renumber the devices in groups and pairs that are listed."""
    number = rng.permutation(8)
    places = r"(?<=replica_groups=)\{\{.*?\}\}|(?<=source_target_pairs=)\{\{.*?\}\}"
    return re.sub(places, lambda found: re.sub(r"\d", lambda n: str(number[int(n[0])]), found[0]), hlo)


def retyped(hlo, rng):
    """Replace a type: f32 for bf16, or f16 for f32."""
    return hlo.replace("bf16[", "f32[") if rng.integers(2) else hlo.replace("f32[", "f16[")


def retimed(hlo, rng):
    """Change the numbers of rounds of the loops."""
    for loop in re.findall(r"^.* while\(.*$", hlo, re.MULTILINE):
        condition = re.search(r"condition=%([^\s,]+)", loop)[1]
        rounds = str(rng.integers(3, 40))
        head = rf"(?s)(\n%{re.escape(condition)} .*?constant\()\d+"
        hlo = re.sub(head, lambda found, to=rounds: found[1] + to, hlo, count=1)
        hlo = hlo.replace(loop, re.sub(r'(?<="known_trip_count":\{"n":")\d+', rounds, loop))
    return hlo


def doubled(hlo, rng):
    """Repeat the line of one collective."""
    lines = re.findall(rf"^  (%\S+) = (.* (?:{'|'.join(KINDS)})\(.*)$", hlo, re.MULTILINE)
    name, rest = lines[rng.integers(len(lines))]
    return hlo.replace(f"  {name} = {rest}\n", f"  {name}.again = {rest}\n  {name} = {rest}\n")


def hidden(*names, twice=False):
    """Draw each text three times: once unchanged and twice changed.

    Args: twice: one of the changed texts repeats a collective.
    """

    def drawn(rng):
        for name in names:
            yield {"hlo": text(name)}
            for again in (False, twice):
                hlo = doubled(text(name), rng) if again else text(name)
                yield {"hlo": retimed(retyped(moved(renamed(hlo, rng), rng), rng), rng)}

    return drawn


def drawn_groups(rng):
    for shape, dims, order in [
        ("4,2", "2,4", "1,0"), ("2,4", "4,2", "1,0"), ("4,2", "2,2,2", "0,2,1"), ("2,4", "2,2,2", "1,0,2"),
        ("4,2", "2,2,2", "2,1,0"), ("4,4", "2,4,2", "1,2,0"), ("2,12", "3,2,4", "1,0,2"), ("8,3", "3,8", "1,0"),
        ("6,4", "3,2,4", "2,0,1"), ("1,8", "8", ""), ("2,4", "8", ""), ("3,4", "12", ""),
    ]:  # fmt: skip
        yield {"text": f"[{shape}]<=[{dims}]" + (f"T({order})" if order else "")}
    for n in (2, 4):
        listed = rng.permutation(16).reshape(-1, n).tolist()
        yield {"text": "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in listed) + "}"}


spelled = exercise.cases(
    device_groups,
    public=[{"text": t} for t in ("{{0,4},{1,5}}", "[4,2]<=[2,4]T(1,0)", "[2,4]<=[8]", "[4,3]<=[2,3,2]T(0,2,1)")],
    hidden=drawn_groups,
)


straight = exercise.cases(
    collectives,
    public=[{"hlo": text("step-cpu")}, {"hlo": text("exchange-cpu")}],
    hidden=hidden("step-cpu-2", "step-cpu-3", "exchange-cpu", twice=True),
)
looped = exercise.cases(
    collectives,
    public=[{"hlo": text("layers-cpu")}, {"hlo": text("layers-tpu")}],
    hidden=hidden("layers-cpu-2", "layers-tpu-2", "ring-cpu"),
)
paired = exercise.cases(collectives, public=[{"hlo": text("ring-tpu")}], hidden=hidden("ring-tpu-2", "exchange-tpu-2"))
wrapped = exercise.cases(
    collectives,
    public=[{"hlo": text("prefetch-tpu")}, {"hlo": text("exchange-tpu")}],
    hidden=hidden("prefetch-tpu-2", "exchange-tpu"),
)


@exercise.check(spelled, points=0.25, public=True)
def lists_read(seen):
    """device_groups: lists"""
    expect_outcomes(seen, where=lambda case: case["text"].startswith("{"), ints=True)


@exercise.check(spelled, points=0.25, public=True)
def groups_read(seen):
    """device_groups: grids that are transposed and cut"""
    expect_outcomes(seen, where=lambda case: case["text"].startswith("["), ints=True)


@exercise.check(straight, points=0.5, public=True, after=groups_read)
def straight_programs(seen):
    """collectives: CPU programs without loops; one collective may send several arrays"""
    expect_outcomes(seen, ints=True)


@exercise.check(looped, points=0.5, public=True)
def loops(seen):
    """collectives: nested loops, on CPU and TPU"""
    expect_outcomes(seen, ints=True)


@exercise.check(paired, points=0.5, public=True)
def starts_and_dones(seen):
    """collectives: transfers that one line starts and another completes"""
    expect_outcomes(seen, ints=True)


@exercise.check(wrapped, points=1, public=True)
def wrappers(seen):
    """collectives: collectives in computations that fusions call"""
    expect_outcomes(seen, ints=True)


# -- what goes wrong -------------------------------------------------------------------------------------


def read(
    hlo,
    rounds="all",
    bytes_of="operands",
    follow=True,
    pieces=False,
    dones=False,
    by_name=False,
    starts=True,
    bodies=True,
):
    """Read the collectives, with one mistake that the arguments choose."""
    parts, entry = computations(hlo)
    found = []

    def visit(name, trips):
        shapes = {result: shape for result, shape, *_ in parts[name]}
        begins = any("AsyncCollectiveStart" in line[-1] for line in parts[name])
        for result, shape, opcode, operands, attributes in parts[name]:
            kind = re.sub(r"[.\d]+$", "", result) if by_name else opcode
            kind = re.sub("-(start|done)$" if dones else "-start$", "", kind) if starts else kind
            called = dict(re.findall(r"(condition|body|calls)=%([^\s,]+)", attributes))
            if opcode == "while" and bodies:
                visit(called["body"], inside(trips, loop_of(parts[called["condition"]]), attributes))
            elif "calls" in called and follow:
                visit(called["calls"], trips)
            elif kind in KINDS and (begins or pieces or "chain_id" not in attributes):
                among = re.search(
                    r"(?:replica_groups|source_target_pairs)=(\{\{.*?\}\}|\[\S+\](?:T\(\S+?\))?)", attributes
                )
                sizes = [size(shapes[o]) for o in operands]
                counted = {"operands": sum(sizes), "first": sizes[0], "result": size(shape)}[bytes_of]
                found.append((kind, counted, device_groups(among[1]) if among else [], trips))

    def inside(trips, due, attributes):
        printed = re.search(r'"known_trip_count":\{"n":"(\d+)"', attributes)
        known = int(printed[1]) if printed else 1
        return {"all": trips * due, "one": 1, "innermost": due, "added": trips + due, "printed": trips * known}[rounds]

    visit(entry, 1)
    return sorted(found)


def loop_of(condition):
    """Return the number of rounds that a loop's condition allows."""
    return next(int(line[3][0]) for line in condition if line[2] == "constant")


def grid(text, cut, transposed):
    """Return the groups; ``transposed(ids, dims, order, shape)`` reads a grid."""
    if text.startswith("{"):
        return [[int(n) for n in group.split(",")] for group in text[2:-2].split("},{")]
    shape, dims, order = re.fullmatch(r"\[(.+)\]<=\[(.+?)\](?:T\((.+)\))?", text).groups(default="")
    shape, dims, order = ([int(n) for n in part.split(",") if n] for part in (shape, dims, order))
    return transposed(np.arange(cut(dims)), dims, order or list(range(len(dims))), shape).tolist()


@exercise.misconception(of=device_groups, fails=lists_read, breaks="lists, and grids")
def groups_of_digits(text):
    """You read each digit as a device. Devices have numbers of several digits, too: split the text at the commas."""
    if text.startswith("["):
        return device_groups(text)
    return [[int(n) for n in re.findall(r"\d", group)] for group in text.split("},{")]


@exercise.misconception(of=device_groups, fails=groups_read, breaks="grids that are transposed and cut")
def groups_not_transposed(text):
    """You cut the devices in their order. T(1,0) transposes the grid first, so the groups are its columns."""
    return grid(text, prod, lambda ids, dims, order, shape: ids.reshape(shape))


@exercise.misconception(of=device_groups, fails=groups_read, breaks="grids that are transposed and cut")
def groups_shape_as_list(text):
    """You read [4,2] as a group of the devices 4 and 2. [4,2] means 4 groups of 2 devices."""
    return device_groups(text) if text.startswith("{") else [[int(n) for n in re.findall(r"\d+", text.split("<=")[0])]]


@exercise.misconception(of=device_groups, fails=groups_read, breaks="grids that are transposed and cut")
def groups_of_the_wrong_size(text):
    """You read [4,2] as groups of 4. [4,2] means 4 groups of 2 devices."""
    return grid(text, prod, lambda ids, dims, order, shape: ids.reshape(dims).transpose(order).reshape(-1, shape[0]))


@exercise.misconception(of=device_groups, fails=groups_read, breaks="grids that are transposed and cut")
def groups_transposed_afterwards(text):
    """You cut first and transposed afterwards. First transpose the grid on the right, then cut it into groups."""
    return grid(
        text,
        prod,
        lambda ids, dims, order, shape: ids.reshape(shape[::-1]).T if order != sorted(order) else ids.reshape(shape),
    )


@exercise.misconception(of=device_groups, fails=groups_read, breaks="transpose it, read 4 groups of 2 by rows")
def groups_by_columns(text):
    """You read the groups by columns. Transpose the grid, then read the groups by rows: devices that follow one another
    are in one group."""
    return grid(
        text, prod, lambda ids, dims, order, shape: ids.reshape(dims).transpose(order).reshape(shape, order="F")
    )


@exercise.misconception(form_of=groups_by_columns)
def groups_down_the_columns(text):
    """Like `groups_by_columns`, but with as many rows as a group has devices."""
    return grid(text, prod, lambda ids, dims, order, shape: ids.reshape(dims).transpose(order).reshape(shape[::-1]).T)


@exercise.misconception(of=device_groups, fails=groups_read, breaks="grids that are transposed and cut")
def groups_order_inverted(text):
    """You used the inverse permutation. T(1,2,0) puts dimension 1 of the grid first, as `np.transpose` does. With two
    dimensions a permutation and its inverse are equal."""
    return grid(
        text, prod, lambda ids, dims, order, shape: ids.reshape(dims).transpose(np.argsort(order)).reshape(shape)
    )


@exercise.misconception(of=collectives, fails=[loops, starts_and_dones], breaks="nested loops multiply")
def loop_counted_once(hlo):
    """You counted a loop's body once. The body runs in every round."""
    return read(hlo, rounds="one")


@exercise.misconception(of=collectives, fails=loops, breaks="nested loops")
def inner_loop_only(hlo):
    """You counted only the rounds of the innermost loop. The inner loop runs again in each round of the loop around it."""
    return read(hlo, rounds="innermost")


@exercise.misconception(of=collectives, fails=[loops, starts_and_dones], breaks="nested loops")
def loops_added(hlo):
    """You added the rounds of nested loops. Multiply them."""
    return read(hlo, rounds="added")


@exercise.misconception(of=collectives, fails=[loops, starts_and_dones], breaks="only CPU prints `known_trip_count`")
def printed_rounds_only(hlo):
    """You looked for `known_trip_count`, which TPU does not print. The constant in the loop's condition is always there."""
    return read(hlo, rounds="printed")


@exercise.misconception(
    of=collectives,
    fails=[starts_and_dones, wrappers],
    breaks="one line starts the transfer, and another line completes it",
)
def started_and_done(hlo):
    """You counted both the start and the done. The two lines are one transfer: one line starts it, and the other line
    waits for it."""
    return read(hlo, dones=True)


@exercise.misconception(
    of=collectives, fails=[loops, starts_and_dones, straight_programs, wrappers], breaks="of all operands of one device"
)
def results_counted(hlo):
    """You counted results. Count operands: a gather's result is N times its operand, and a start's result is a tuple
    with the operand, the result and more."""
    return read(hlo, bytes_of="result")


@exercise.misconception(of=collectives, fails=[loops, starts_and_dones, straight_programs], breaks="several operands")
def first_of_a_tuple(hlo):
    """You counted only the first operand. The compiler joins several collectives into one, so add up all operands."""
    return read(hlo, bytes_of="first")


@exercise.misconception(of=collectives, fails=straight_programs, breaks="equal lines count twice")
def alike_listed_once(hlo):
    """You listed equal transfers once. Two equal lines are two transfers: list both."""
    return sorted({repr(one): one for one in collectives(hlo)}.values())


@exercise.misconception(of=collectives, fails=wrappers, breaks="computations that a `fusion` calls")
def calls_not_followed(hlo):
    """You did not look into the computations that fusions call. Such a computation may contain a collective: follow
    `calls=`."""
    return read(hlo, follow=False)


@exercise.misconception(of=collectives, fails=[loops, starts_and_dones, wrappers], breaks="a loop counts from 0")
def first_computation_only(hlo):
    """You read only the computation that runs first. The bodies of loops and the computations that fusions call run
    too: follow `body=` and `calls=`."""
    return read(hlo, bodies=False, follow=False)


@exercise.misconception(
    of=collectives,
    fails=[starts_and_dones, wrappers],
    breaks="one line starts the transfer, and another line completes it",
)
def starts_unseen(hlo):
    """You did not count lines that start a transfer. Their opcode is a kind with `-start`, such as
    `collective-permute-start`."""
    return read(hlo, starts=False)


@exercise.misconception(of=collectives, fails=wrappers, breaks="Count it once")
def every_piece_counted(hlo):
    """You counted a gather in every fusion of its chain. Each `chain_id` is one gather: count it in the fusion with
    `AsyncCollectiveStart`."""
    return read(hlo, pieces=True)


@exercise.misconception(
    of=collectives,
    fails=[loops, starts_and_dones, straight_programs, wrappers],
    breaks="the opcode, whatever the line's name",
)
def kinds_by_name(hlo):
    """You read the kind from the instruction's name. Names mean nothing. Read the opcode, which comes before the
    parenthesis."""
    return read(hlo, by_name=True)


# -- in other styles ------------------------------------------------------------------------------------


@exercise.alternative(of=device_groups)
def groups_by_counting(text):
    """Compute, without arrays, the device at every index of the transposed grid, in order."""
    if "<=" not in text:
        return [[int(n) for n in group.split(",")] for group in text[2:-2].split("},{")]
    cut, _, made = text.partition("<=")
    dims, _, order = made.partition("T")
    dims = [int(n) for n in dims.strip("[]").split(",")]
    order = [int(n) for n in order.strip("()").split(",")] if order else list(range(len(dims)))
    strides = [prod(dims[i + 1 :]) for i in range(len(dims))]
    ids = [
        sum(i * strides[d] for i, d in zip(index, order, strict=True))
        for index in product(*(range(dims[d]) for d in order))
    ]
    n = int(cut.strip("[]").split(",")[1])
    return [ids[i : i + n] for i in range(0, len(ids), n)]


@exercise.alternative(of=collectives)
def collectives_from_callers(hlo):
    """First compute how often each computation runs, from the last to the first, because callees are printed before
    their callers. Then read all lines in one pass."""
    parts, entry = computations(hlo)
    runs = dict.fromkeys(parts, 0) | {entry: 1}
    for name in reversed(list(parts)):
        for *_, opcode, _, attributes in parts[name]:
            called = dict(re.findall(r"(condition|body|calls)=%([^\s,]+)", attributes))
            rounds = 1
            if opcode == "while":
                known = re.search(r'known_trip_count":\{"n":"(\d+)"', attributes)
                constants = [line[3][0] for line in parts[called.pop("condition")] if line[2] == "constant"]
                rounds = int(known[1] if known else constants[0])
            for one in called.values():
                runs[one] += runs[name] * rounds
    found = []
    for name, lines in parts.items():
        starts = {o for line in lines if 'target="AsyncCollectiveStart"' in line[4] for o in line[3]}
        for result, _, opcode, operands, attributes in lines:
            kind = opcode.replace("-start", "")
            if kind not in KINDS or not runs[name] or ("chain_id" in attributes and result not in starts):
                continue
            among = attributes.split("source_target_pairs=" if kind == "collective-permute" else "replica_groups=")[1]
            among = among[: among.index("}}") + 2] if among.startswith("{{") else among.split(", ")[0]
            moved = sum(size(next(s for r, s, *_ in lines if r == o)) for o in operands)
            found.append([kind, moved, device_groups(among), runs[name]])
    return sorted(found)


@exercise.alternative(of=collectives)
def collectives_from_results(hlo):
    """Compute bytes from results instead of operands: divide a gather's result by the group's size, multiply a
    scatter's result by the group's size, and use the second part of a start's tuple."""
    parts, entry = computations(hlo)
    found = []
    todo = [(entry, 1)]
    while todo:
        name, trips = todo.pop()
        begun = "AsyncCollectiveStart" in str(parts[name])
        for _, shape, opcode, _, attributes in parts[name]:
            called = re.search(r"(?:calls|body)=%([\w.-]+)", attributes)
            if opcode == "while":
                condition = re.search(r"condition=%([\w.-]+)", attributes)[1]
                trips_inside = trips * int(*(line[3][0] for line in parts[condition] if line[2] == "constant"))
                todo.append((called[1], trips_inside))
            elif called:
                todo.append((called[1], trips))
            elif (kind := opcode.removesuffix("-start")) in KINDS and ("chain_id" not in attributes or begun):
                among = device_groups(re.search(r"(?:groups|pairs)=(\{\{[^ ]*\}\}|\[[^ ]*[\])])", attributes)[1])
                if opcode != kind:
                    shape = re.findall(r"\w+\[[\d,]*\]", shape)[1]
                n = len(among[0])
                moved = {"all-gather": size(shape) // n, "reduce-scatter": size(shape) * n}.get(kind, size(shape))
                found.append((kind, moved, among, trips))
    return sorted(found)


# -- the question ----------------------------------------------------------------------------------------


@exercise.misconception(of=sent_by_loops)
def sent_in_one_round(M, L, **line):
    """You counted one run. The line runs in every round of both loops."""
    return sent_by_loops(M=1, L=1, **line)


@exercise.misconception(of=sent_by_loops)
def sent_in_inner_loop(M, **rest):
    """You counted the inner loop once. The inner loop runs again in each round of the loop around it."""
    return sent_by_loops(M=1, **rest)


@exercise.misconception(of=sent_by_loops)
def sent_twice(**params):
    """You counted the start and the done. The two lines are one transfer."""
    return 2 * sent_by_loops(**params)


@exercise.misconception(of=sent_by_loops)
def sent_in_wrong_groups(G, N, **rest):
    """You used the first number of the pair as the size of a group. The first number is the number of groups, and the
    second number is the size of a group."""
    return sent_by_loops(G=N, N=G, **rest)


@exercise.misconception(of=sent_by_loops)
def sent_own_chunk_once(N, **rest):
    """You counted one part. A device passes on N - 1 parts."""
    return sent_by_loops(N=2, **rest)


@exercise.misconception(of=sent_by_loops)
def sent_whole_result(N, **rest):
    """You counted the whole result. A device does not pass on the part that it receives last, so it sends N - 1 parts."""
    return sent_by_loops(N=N + 1, **rest)


@exercise.misconception(of=sent_by_loops)
def sent_results_for_parts(N, **rest):
    """You let a device pass on arrays as large as the result. Each of the N - 1 parts is as large as the operand, 1/N
    of the result."""
    return N * sent_by_loops(N=N, **rest)


@exercise.misconception(of=sent_by_loops)
def sent_both_sides(N, **rest):
    """You added both the operand and the result in the start's tuple. A device sends N - 1 parts of the operand's size."""
    return sent_by_loops(N=N + 2, **rest)


exercise.scenario(
    sent_by_loops,
    lambda M, L, A, B, G, N: Scenario(
        mesh={"x": N, "y": G}, arrays=[((A * N, B), ("x", None))], rings=(N,), least=2 * A * B
    ),
)

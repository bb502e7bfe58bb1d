"""The reference solution."""

import re
from math import prod

import numpy as np


ITEMSIZE = {"pred": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}


KINDS = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def computations(hlo):
    """Return the computations by name, and the name of the computation that runs first.

    Each computation is a list of its lines. A line is (result, shape, opcode, operands, attributes), such as
    ("g.1", "f32[8,4]{1,0}", "all-gather", ["w.2"], "channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}")
    or ("c.3", "s32[]", "constant", ["7"], "").
    """
    found, entry = {}, ""
    for line in hlo.splitlines():
        if head := re.match(r"(ENTRY )?%(\S+) \(.*\{$", line):
            current = found[head[2]] = []
            entry = head[2] if head[1] else entry
        elif part := re.match(r"  (?:ROOT )?%(\S+) = (.*?) ([a-z][a-z-]*)\((.*?)\)(?:, (.*))?$", line):
            result, shape, opcode, inside, attributes = part.groups(default="")
            operands = [o.strip().lstrip("%") for o in re.sub(r"/\*.*?\*/", "", inside).split(",")]
            current.append((result, shape, opcode, operands, attributes))
    return found, entry


def device_groups(text):
    """Return the groups of ``{{0,4},{1,5}}`` or ``[4,2]<=[2,4]T(1,0)``, as lists of devices in the order of the text."""
    if text.startswith("{"):
        return [[int(n) for n in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", text)]
    shape, dims, order = re.fullmatch(r"\[(.+)\]<=\[(.+?)\](?:T\((.+)\))?", text).groups(default="")
    shape, dims, order = ([int(n) for n in part.split(",") if n] for part in (shape, dims, order))
    ids = np.arange(prod(dims)).reshape(dims)
    return ids.transpose(order or range(len(dims))).reshape(shape).tolist()


def collectives(hlo):
    """Return every collective that the program runs, as (kind, bytes, groups, trips), sorted; two equal lines give two entries."""
    parts, entry = computations(hlo)
    found = []

    def visit(name, trips):
        shapes = {result: shape for result, shape, *_ in parts[name]}
        begins = any("AsyncCollectiveStart" in line[-1] for line in parts[name])
        for _, _, opcode, operands, attributes in parts[name]:
            kind = opcode.removesuffix("-start")
            called = dict(re.findall(r"(condition|body|calls)=%([^\s,]+)", attributes))
            if opcode == "while":
                [rounds] = next(line[3] for line in parts[called["condition"]] if line[2] == "constant")
                visit(called["body"], trips * int(rounds))
            elif "calls" in called:
                visit(called["calls"], trips)
            elif kind in KINDS and (begins or "chain_id" not in attributes):
                among = re.search(
                    r"(?:replica_groups|source_target_pairs)=(\{\{.*?\}\}|\[\S+\](?:T\(\S+?\))?)", attributes
                )
                found.append((kind, sum(size(shapes[o]) for o in operands), device_groups(among[1]), trips))

    visit(entry, 1)
    return sorted(found)


def size(shape):
    """Return the bytes of a shape such as bf16[8,4]{1,0}, or of all shapes in a tuple."""
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(ITEMSIZE[dtype] * prod(int(n) for n in dims.split(",") if n) for dtype, dims in arrays)

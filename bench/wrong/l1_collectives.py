# pyright: reportOptionalOperand=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportArgumentType=false
import re
from math import prod

import numpy as np

from l1_collectives import KINDS, computations, device_groups, size


def numbers(text):
    return [int(n) for n in text.split(",")]


def listed(text, order=True, transposed=True):
    if text[0] == "{":
        return [numbers(group) for group in re.findall(r"\{([0-9,]+)\}", text)]
    [(cut, dims, axes)] = re.findall(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    ids = np.arange(np.prod(numbers(dims))).reshape(numbers(dims))
    if axes and transposed:
        ids = ids.transpose(numbers(axes))
    return ids.reshape(numbers(cut), order="C" if order else "F").tolist()


def grid_not_transposed(text):
    """device_groups: groups_not_transposed
    Row: a grid is read as a list of devices in order; T(...) is not applied."""
    return listed(text, transposed=False)


def grid_read_as_its_size(text):
    """device_groups: groups_not_transposed
    Row: only the first bracket is used: devices in order, cut into groups."""
    if text.startswith("{"):
        return listed(text)
    groups, each = numbers(re.findall(r"\[([\d,]+)\]", text)[0])
    return [list(range(g * each, (g + 1) * each)) for g in range(groups)]


def grid_read_by_columns(text):
    """device_groups: groups_by_columns
    Row: the grid is transposed after the groups are cut: groups are read by columns."""
    return listed(text, order=False)


def lines(hlo, rounds=True, inner=False, follow=("while", "calls"), weight=None, chained=True, kind_of=None):
    parts, entry = computations(hlo)
    found = []

    def of(name, times):
        shape_of = {line[0]: line[1] for line in parts[name]}
        starts = any("AsyncCollectiveStart" in line[4] for line in parts[name])
        for _, shape, opcode, operands, rest in parts[name]:
            if opcode == "while" and "while" in follow:
                body = re.findall(r"body=%([^\s,]+)", rest)[0]
                condition = re.findall(r"condition=%([^\s,]+)", rest)[0]
                [n] = [int(line[3][0]) for line in parts[condition] if line[2] == "constant"]
                of(body, (n if inner else times * n) if rounds else times)
            elif "calls=%" in rest and "calls" in follow:
                of(re.findall(r"calls=%([^\s,]+)", rest)[0], times)
            kind = kind_of(opcode) if kind_of else opcode.removesuffix("-start")
            if kind in KINDS and (not chained or starts or "chain_id" not in rest):
                where = re.search(r"(?:groups|pairs)=(\{\{.*?\}\}|\[\S+?\](?:T\(\S+?\))?)(?:,|$)", rest)
                n_bytes = (
                    weight(shape, [shape_of[o] for o in operands])
                    if weight
                    else sum(size(shape_of[o]) for o in operands)
                )
                found.append((kind, n_bytes, device_groups(where[1]) if where else [], times))

    of(entry, 1)
    return sorted(found)


def loops_run_once(hlo):
    """collectives: loop_counted_once
    Row: a loop's collectives count once."""
    return lines(hlo, rounds=False)


def innermost_loop_only(hlo):
    """collectives: inner_loop_only
    Row: nested loops do not multiply: only the innermost loop's rounds count."""
    return lines(hlo, inner=True)


def start_and_done_both(hlo):
    """collectives: started_and_done
    Row: start and done both count."""
    return lines(hlo, kind_of=lambda op: op.removesuffix("-start").removesuffix("-done"))


def starts_unseen(hlo):
    """collectives: starts_unseen
    Row: a line that starts a transfer is not seen."""
    return lines(hlo, kind_of=lambda op: op)


def wrapper_unseen(hlo):
    """collectives: calls_not_followed
    Row: computations that a fusion calls are not followed."""
    return lines(hlo, follow=("while",))


def chain_counted_each_time(hlo):
    """collectives: every_piece_counted
    Row: each of the several fusions of one overlapped gather counts."""
    return lines(hlo, chained=False)


def operand_and_result(hlo):
    """collectives: results_counted
    Row: the bytes of a start are those of its tuple, operand and result."""
    return lines(hlo, weight=lambda shape, operands: size(shape))


def first_of_a_tuple(hlo):
    """collectives: first_of_a_tuple
    Row: only the first operand counts."""
    return lines(hlo, weight=lambda shape, operands: size(operands[0]))


def only_the_top_level(hlo):
    """collectives: calls_not_followed, first_computation_only
    Row: neither loops nor fusions are followed."""
    return lines(hlo, follow=())


def _walk(hlo, opcode_of=lambda op: op.removesuffix("-start"), nested=True, by_result=False):
    found, entry = computations(hlo)
    out = []

    def walk(name, trips):
        lines = found[name]
        shapes = {result: shape for result, shape, *_ in lines}
        started = any("AsyncCollectiveStart" in attributes for *_, attributes in lines)
        for _, shape, opcode, operands, attributes in lines:
            kind = opcode_of(opcode)
            if kind in KINDS:
                if "chain_id" in attributes and not started:
                    continue
                sent = size(shape) if by_result else sum(size(shapes[o]) for o in operands)
                if pairs := re.search(r"source_target_pairs=(\{\{.*?\}\})", attributes):
                    groups = pairs[1]
                else:
                    groups = re.search(
                        r"replica_groups=(\{\{.*?\}\}|\[[^ ,]*\]<=\[[\d,]*\](?:T\([\d,]*\))?|\[[\d,]*\]<=\[[\d,]*\](?:T\([\d,]*\))?)",
                        attributes,
                    )[1]
                out.append((kind, sent, device_groups(groups), trips))
            elif opcode == "while":
                condition = re.search(r"condition=%([\w.\-]+)", attributes)[1]
                body = re.search(r"body=%([\w.\-]+)", attributes)[1]
                rounds = max(int(o[0]) for _, _, op, o, _ in found[condition] if op == "constant" and o[0].isdigit())
                walk(body, trips * rounds if nested else rounds)
            else:
                for called in re.findall(r"(?:calls|to_apply)=%([\w.\-]+)", attributes):
                    walk(called, trips)

    walk(entry, 1)
    return sorted(out)


def forgets_to_transpose(text):
    """device_groups: groups_not_transposed"""
    if text.startswith("{{"):
        return [[int(d) for d in g.split(",")] for g in re.findall(r"\{([\d,]+)\}", text)]
    rows, cols = map(int, re.match(r"\[(\d+),(\d+)\]", text).groups())
    return [list(range(r * cols, (r + 1) * cols)) for r in range(rows)]


def _groups(text, one_group=r"\{([\d,]+)\}", inverted=False):
    import numpy as np

    if text.startswith("{{"):
        return [[int(d) for d in g.split(",")] for g in re.findall(one_group, text)]
    shape, dims, perm = re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text).groups()
    dims = [int(d) for d in dims.split(",")]
    ids = np.arange(prod(dims)).reshape(dims)
    if perm:
        order = [int(p) for p in perm.split(",")]
        ids = ids.transpose(np.argsort(order) if inverted else order)
    return ids.reshape([int(s) for s in shape.split(",")]).tolist()


def only_pairs_in_lists(text):
    """device_groups: none"""
    return _groups(text, one_group=r"\{(\d+,\d+)\}")


def transposes_back(text):
    """device_groups: groups_order_inverted"""
    return _groups(text, inverted=True)


def only_the_inner_loop(hlo):
    """collectives: inner_loop_only"""
    return _walk(hlo, nested=False)


def started_transfers_missed(hlo):
    """collectives: starts_unseen"""
    return _walk(hlo, opcode_of=lambda op: op)


def bytes_of_the_result(hlo):
    """collectives: results_counted"""
    return _walk(hlo, by_result=True)


def inner_rounds_only(M, L, A, B, G, N):
    """sent_by_loops: sent_in_inner_loop"""
    return L * (N - 1) * A * B * 2


def its_block_once_each_round(M, L, A, B, G, N):
    """sent_by_loops: sent_own_chunk_once"""
    return M * L * A * B * 2


def groups_and_members_swapped(M, L, A, B, G, N):
    """sent_by_loops: sent_in_wrong_groups"""
    return M * L * (G - 1) * A * B * 2

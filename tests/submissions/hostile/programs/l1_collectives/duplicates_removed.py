"""The program lists equal transfers only once.

changes: honest.py
kind: duplicates removed
earns: 2.5 of 3
fails: straight_programs
says: for hlo=
"""


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
    return sorted({repr(one): one for one in found}.values())

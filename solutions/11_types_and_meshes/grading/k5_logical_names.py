"""K5: checks, misconceptions and alternatives."""

from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario
from grader.expect import expect_outcomes
from k5_logical_names import axes_of, bytes_by_rules, exercise, spec_by_rules, spec_of

NAMES = ["batch", "seq", "heads", "embed", "mlp", "vocab"]
AXES = ["dp", "fsdp", "tp", "cp"]
ENTRIES = ["dp", "fsdp", "tp", "tp", "cp", ("dp", "fsdp"), ("fsdp", "tp"), ("tp", "cp"), ("cp", "dp"), None]


def entries_by_rules(names, rules, mesh, *, once=True, by_rule=True, present=True, none=True, first=True, whole=True):
    """Return each name's entry by the rules. A keyword that is False switches one clause off. Names without a rule give
    None."""
    served, taken = {}, set()
    turns = rules if by_rule else sorted(rules, key=lambda rule: names.index(rule[0]) if rule[0] in names else 99)
    for name, entry in turns if first else turns[::-1]:
        axes = axes_of(entry)
        fitting = tuple(a for a in axes if (a in mesh or not present) and (a not in taken or not once))
        serves = fitting == axes or (fitting and not whole)
        if name in names and name not in served and serves and (none or axes):
            served[name] = fitting
            taken.update(fitting)
    return [served.get(name) or None for name in names]


CLAUSES = ["once", "by_rule", "present", "none", "first", "whole"]


def matters(case):
    """Return the clauses that change the result of this case if they are switched off."""
    due = entries_by_rules(**case)
    return {clause for clause in CLAUSES if entries_by_rules(**case, **{clause: False}) != due}


def any_case(rng):
    """Draw an array's names, rules for these names and others, and a mesh."""
    names = [NAMES[i] for i in rng.permutation(len(NAMES))][: int(rng.integers(2, 5))]
    rules = [
        (name, ENTRIES[rng.integers(len(ENTRIES))]) for name in [*NAMES, *names[int(rng.integers(len(names) + 1)) :]]
    ]
    mesh = [AXES[i] for i in rng.permutation(len(AXES))][: int(rng.integers(2, 5))]
    return {
        "names": (*names, None)[: len(names) + int(rng.integers(2))],
        "rules": [rules[i] for i in rng.permutation(len(rules))],
        "mesh": {axis: int(rng.integers(1, 9)) for axis in mesh},
    }


def drawn(*wanted, count=16):
    """Draw cases in which exactly these clauses matter, equally many for each set of clauses."""

    def draw(rng):
        found = {frozenset(clauses): [] for clauses in wanted}
        while min(map(len, found.values())) < count:
            case = any_case(rng)
            cases = found.get(frozenset(matters(case)))
            if cases is not None and len(cases) < count:
                cases.append(case)
        return [case for cases in found.values() for case in cases]

    return draw


def strange(rng):
    """Draw arrays with a name that no rule has."""
    for _ in range(30):
        case = any_case(rng)
        lost = case["names"][0]
        yield {**case, "rules": [(name + "s" * (name == lost), entry) for name, entry in case["rules"]]}


RULES = [("batch", ("dp", "fsdp")), ("heads", "tp"), ("embed", "fsdp"), ("seq", "tp"), ("batch", "dp"), ("mlp", "tp")]
MESH = {"dp": 2, "fsdp": 4, "tp": 3}


def example(*names, rules=RULES, mesh=MESH):
    return {"names": names, "rules": rules, "mesh": mesh}


plain = exercise.cases(
    spec_of, public=[example("embed", "mlp"), example("heads", None, "embed")], hidden=drawn((), count=30)
)
once = exercise.cases(
    spec_of,
    public=[example("batch", "embed"), example("heads", "mlp")],
    hidden=drawn(("once",), ("once", "whole", "first")),
)
in_order = exercise.cases(
    spec_of,
    public=[
        example("batch", "seq", "heads"),
        example("seq", "embed", rules=[("seq", "tp"), ("embed", "fsdp"), ("seq", "dp")]),
        example("seq", "heads", rules=[("heads", "tp"), ("seq", "tp"), ("seq", "dp")]),
    ],
    hidden=drawn(("once", "by_rule", "first"), ("first",)),
)
absent = exercise.cases(
    spec_of,
    public=[example("batch", "seq", mesh={"dp": 2, "tp": 3}), example("embed", "mlp", mesh={"dp": 2, "tp": 3})],
    hidden=drawn(("present",), ("present", "whole")),
)
left_whole = exercise.cases(
    spec_of,
    public=[example("embed", "mlp", rules=[("embed", None), ("embed", "fsdp"), ("mlp", "tp"), ("embed", "dp")])],
    hidden=drawn(("none", "first"), count=24),
)
unknown = exercise.cases(spec_of, public=[example("embed", "mpl")], hidden=strange)


@exercise.check(plain, points=0.25, public=True)
def by_name(seen):
    """spec_of: each dimension follows the rule for its name"""
    expect_outcomes(seen)


@exercise.check(once, points=0.5, public=True)
def each_axis_once(seen):
    """spec_of: rules are skipped if one of their axes is taken"""
    expect_outcomes(seen)


@exercise.check(in_order, points=0.5, public=True)
def rules_in_order(seen):
    """spec_of: rules are tried from first to last, whatever the order of the dimensions"""
    expect_outcomes(seen)


@exercise.check(absent, points=0.25, public=True)
def axes_of_the_mesh(seen):
    """spec_of: a rule with an axis that the mesh lacks is skipped"""
    expect_outcomes(seen)


@exercise.check(left_whole, points=0.25, public=True)
def none_serves(seen):
    """spec_of: a rule with None leaves the dimension whole, whatever rules follow"""
    expect_outcomes(seen)


@exercise.check(unknown, points=0.25, public=True, after=by_name)
def no_rule(seen):
    """spec_of: ValueError for a name without a rule"""
    expect_outcomes(seen)


# -- what goes wrong ---------------------------------------------------------------------------


def known(names, rules):
    if {name for name in names if name} - {name for name, _ in rules}:
        raise ValueError("no rule")


@exercise.misconception(fails=[each_axis_once, rules_in_order], breaks="an axis cuts at most one dimension")
def axis_used_twice(names, rules, mesh):
    """You used an axis for two dimensions. JAX refuses such a spec: an axis cuts at most one dimension of an array.
    Keep a set of taken axes."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, once=False))


@exercise.misconception(fails=rules_in_order, breaks="tried from first to last, whatever the order of the dimensions")
def dimensions_first(names, rules, mesh):
    """You went through the dimensions and looked up rules for each. If two dimensions want one axis, the dimension of
    the earlier rule gets it."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, by_rule=False))


@exercise.misconception(fails=axes_of_the_mesh, breaks="a rule with an axis that the mesh lacks is skipped")
def mesh_not_asked(names, rules, mesh):
    """You ignored the mesh. Skip a rule with an axis that the mesh lacks, so that one list of rules works for several
    meshes."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, present=False))


@exercise.misconception(fails=none_serves, breaks="a rule with None can apply too")
def none_is_no_rule(names, rules, mesh):
    """You skipped a rule with None. Such a rule applies: the dimension stays whole, and later rules for its name do not
    count."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, none=False))


@exercise.misconception(
    fails=[each_axis_once, rules_in_order, none_serves], breaks=["that is not skipped applies", "whatever rules follow"]
)
def last_rule_wins(names, rules, mesh):
    """You let a later rule for the same name replace an earlier rule, as dict(rules) does. The first rule that is not
    skipped applies."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, first=False))


@exercise.misconception(
    fails=[each_axis_once, rules_in_order, axes_of_the_mesh],
    breaks="that is not skipped applies",
)
def first_rule_alone(names, rules, mesh):
    """You tried only the first rule of each name. If the first rule is skipped, the next rule for this name may
    apply."""
    known(names, rules)
    firsts = {}
    for name, entry in rules:
        firsts.setdefault(name, entry)
    return P(*entries_by_rules(names, list(firsts.items()), mesh))


@exercise.misconception(
    fails=[each_axis_once, axes_of_the_mesh],
    breaks=[
        "a rule with a taken axis is skipped completely",
        "a rule with an axis that the mesh lacks is skipped completely",
    ],
)
def part_of_a_rule(names, rules, mesh):
    """You used the remaining axes of a tuple. Apply a rule completely, or skip it."""
    known(names, rules)
    return P(*entries_by_rules(names, rules, mesh, whole=False))


@exercise.misconception(fails=axes_of_the_mesh, breaks="a rule with an axis that the mesh lacks is skipped completely")
def missing_axes_left_out(names, rules, mesh):
    """A tuple has an axis that the mesh lacks. You used the other axes of the tuple. Skip the rule completely."""
    known(names, rules)
    present = [(name, tuple(a for a in axes_of(entry) if a in mesh)) for name, entry in rules]
    kept = [rule for rule, (_, entry) in zip(present, rules, strict=True) if rule[1] or entry is None]
    return P(*entries_by_rules(names, kept, mesh))


@exercise.misconception(fails=each_axis_once, breaks="a rule with a taken axis is skipped completely")
def taken_axes_left_out(names, rules, mesh):
    """You left the taken axis out of a tuple and used the rest. Skip the rule completely."""
    known(names, rules)
    present = [(name, entry) for name, entry in rules if all(a in mesh for a in axes_of(entry))]
    return P(*entries_by_rules(names, present, mesh, whole=False))


@exercise.misconception(fails=no_rule, breaks="`ValueError` for a name that no rule has")
def unknown_is_whole(names, rules, mesh):
    """You left a dimension whole although its name has no rule. Raise ValueError: a misspelt name would otherwise waste
    memory unnoticed."""
    return P(*entries_by_rules(names, rules, mesh))


@exercise.misconception(
    fails=[by_name, each_axis_once, rules_in_order, axes_of_the_mesh, none_serves],
    breaks="among the rules for a dimension's name",
)
def by_position(names, rules, mesh):
    """You applied the first rule to the first dimension, and so on. A rule belongs to the dimension that has its
    name."""
    return P(*[entry for _, entry in rules[: len(names)]])


@exercise.misconception(fails=[each_axis_once, rules_in_order], breaks="if all are skipped, the dimension stays whole")
def nothing_left_is_an_error(names, rules, mesh):
    """You raised an error if all rules of a name are skipped. In this case the dimension stays whole."""
    spec = spec_of(names, rules, mesh)
    for name, entry in zip(names, spec, strict=True):
        entries = [rule for other, rule in rules if other == name]
        if name and entry is None and None not in entries and all(set(axes_of(rule)) <= set(mesh) for rule in entries):
            raise ValueError("no rule applies")
    return spec


@exercise.misconception(of=bytes_by_rules)
def fsdp_used_twice(B, S, E, F, mesh):
    """You also cut the embed dimension of x by fsdp. The batch dimension of x has taken fsdp, and an axis cuts one
    dimension of an array."""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * fsdp * tp) + 2 * E * F / (fsdp * tp)


@exercise.misconception(of=bytes_by_rules)
def axes_taken_for_good(B, S, E, F, mesh):
    """You treated the axes of x as taken for w. Each array starts with no axis taken."""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp) + 2 * E * F


@exercise.misconception(of=bytes_by_rules)
def embed_left_whole(B, S, E, F, mesh):
    """You left the embed dimension of w whole. w has no batch dimension that takes fsdp, so embed gets fsdp."""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp) + 2 * E * F / tp


@exercise.misconception(of=bytes_by_rules)
def seq_left_whole(B, S, E, F, mesh):
    """You left seq whole because the rule for mlp comes first. x has no mlp dimension, so seq gets tp."""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp) + 2 * E * F / (fsdp * tp)


@exercise.misconception(of=bytes_by_rules)
def everything_by_everything(B, S, E, F, mesh):
    """You divided w by dp. None of the names of w has a rule with dp, so devices along dp hold copies of w."""
    dp, fsdp, tp = mesh
    return (2 * B * S * E + 2 * E * F) / (dp * fsdp * tp)


@exercise.misconception(of=spec_by_rules)
def later_rule_takes_it(first, weight, mesh):
    """You gave tp to the dimension of the later rule. Rules are tried from first to last, so the earlier rule takes
    tp."""
    return spec_by_rules(first="seq" if first == "heads" else "heads", weight=weight, mesh=mesh)


@exercise.misconception(of=spec_by_rules)
def nobody_takes_it(first, weight, mesh):
    """You gave tp to no dimension because two rules want it. The first rule takes tp, and the second rule is
    skipped."""
    return P(None, ("dp", "fsdp") if "fsdp" in mesh else "dp")


@exercise.misconception(of=spec_by_rules)
def batch_goes_without(first, weight, mesh):
    """You left the batch whole. The batch has two rules: if the first rule is skipped, the second rule may apply."""
    last = "fsdp" if "fsdp" in mesh else "dp"
    return P("tp" if first == "seq" else None, None, "tp" if first == "heads" else None, last)


exercise.scenario(
    bytes_by_rules,
    lambda B, S, E, F, mesh: Scenario(
        mesh=dict(zip(("dp", "fsdp", "tp"), mesh, strict=True)),
        arrays=[((B, S, E), (("dp", "fsdp"), "tp")), ((E, F), ("fsdp", "tp"))],
    ),
)
exercise.scenario(
    spec_by_rules,
    lambda first, weight, mesh: Scenario(
        mesh={"dp": 2, "fsdp": 3, "tp": 4},
        arrays=[((12, 12, 12, 12), spec_by_rules(first=first, weight=weight, mesh=mesh))],
    ),
)


# -- other styles ------------------------------------------------------------------------------


@exercise.alternative()
def again_and_again(names, rules, mesh):
    """Keep a list of entries by dimension, and a set of free axes in place of taken axes."""
    entries, done = [None] * len(names), [name is None for name in names]
    free = set(mesh)
    for name in names:
        if name is not None and not [rule for rule in rules if rule[0] == name]:
            raise ValueError(name)
    for name, axes in rules:
        if name not in names:
            continue
        dim = names.index(name)
        if done[dim]:
            continue
        wanted = [axes] if isinstance(axes, str) else list(axes or [])
        if free.issuperset(wanted):
            free.difference_update(wanted)
            done[dim] = True
            entries[dim] = tuple(wanted) or None
    while entries and entries[-1] is None:
        del entries[-1]
    return P(*entries)


@exercise.alternative()
def recursive(names, rules, mesh):
    """Recurse: apply the first rule, then solve the rest with the remaining rules and axes."""
    if any(name and name not in dict(rules) for name in names):
        raise ValueError("no rule")

    def served(waiting, rules, free):
        if not rules:
            return {}
        (name, entry), *later = rules
        if name in waiting and set(axes_of(entry)) <= free:
            return {name: entry} | served(waiting - {name}, later, free - set(axes_of(entry)))
        return served(waiting, later, free)

    found = served({name for name in names if name}, list(rules), set(mesh))
    return P(*(found.get(name) for name in names))

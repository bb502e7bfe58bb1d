"""I4: checks, misconceptions and alternatives."""

from grader.exercise import Scenario
from grader.expect import Failure
from grader.hardware import GPUS
from i4_run_ranks import alternating_ring_time, blocking_ring_time, exercise, run_ranks


def made(rng, ranks, length, kinds):
    """Draw programs that end. Events are drawn in one order, and each rank gets its part of the events."""
    programs, pending = [[] for _ in range(ranks)], []
    for number in range(length):
        kind = str(rng.choice(kinds))
        a, b = (int(r) for r in rng.choice(ranks, 2, replace=False))
        name = "abcd"[int(rng.integers(4))]
        if kind == "all_reduce":
            group = tuple(sorted(int(r) for r in rng.choice(ranks, int(rng.integers(2, ranks + 1)), replace=False)))
            for rank in group:
                programs[rank].append(("all_reduce", group))
        elif kind == "isend":
            name = f"{name}{number}"
            programs[a].append(("isend", b, name))
            pending.append((a, b, name))
        if kind == "send" and not any(one[:2] == (a, b) for one in pending):
            programs[a].append(("send", b, name))
            programs[b].append(("recv", a, "abcd"[int(rng.integers(4))]))
        if pending and rng.random() < 0.6:
            a, b, name = pending.pop(next(i for i, one in enumerate(pending) if one[:2] == pending[-1][:2]))
            programs[b].append(("recv", a, "abcd"[int(rng.integers(4))]))
            if rng.random() < 0.7:
                programs[a].append(("wait", name))
    return programs


def drawn(rng, kinds, wanted, count=40):
    """Draw programs that end, and programs with one operation left out, repeated or moved one place later."""
    found = []
    while len(found) < count:
        programs = made(rng, int(rng.integers(3, 6)), int(rng.integers(4, 12)), kinds)
        change, rank = int(rng.integers(4)), int(rng.integers(len(programs)))
        program = programs[rank]
        if change and len(program) > 1:
            at = int(rng.integers(len(program) - 1))
            cut = {1: [], 2: [program[at]] * 2, 3: [program[at + 1], program[at]]}[change]
            program[at : at + 1 + (change == 3)] = cut
        if wanted({op[0] for program in programs for op in program}):
            found.append({"programs": programs})
    return found


message_cases = exercise.cases(
    run_ranks,
    public=[
        {"programs": [[("send", 1, "a"), ("recv", 1, "b")], [("recv", 0, "a"), ("send", 0, "b")]]},
        {"programs": [[("send", 1, "a"), ("recv", 1, "b")], [("send", 0, "b"), ("recv", 0, "a")], [("recv", 0, "a")]]},
        {"programs": [[("send", 1, "a"), ("send", 1, "b")], [("recv", 0, "b"), ("recv", 0, "a")]]},
        {"programs": [[("recv", 2, "a")], [("send", 0, "a")], [("send", 0, "b")], []]},
        {"programs": [[("send", 1, "a"), ("send", 1, "b")], [("recv", 0, "a")]]},
    ],
    hidden=lambda rng: drawn(rng, ["send"], lambda kinds: kinds == {"send", "recv"}),
)
isend_cases = exercise.cases(
    run_ranks,
    public=[
        {"programs": [[("isend", 1, "a"), ("recv", 1, "b"), ("wait", "a")], [("isend", 0, "b"), ("recv", 0, "a"), ("wait", "b")]]},
        {"programs": [[("isend", 1, "a"), ("wait", "a")], [("send", 2, "b"), ("recv", 0, "a")], []]},
        {"programs": [[("isend", 1, "a"), ("isend", 1, "b"), ("wait", "b")], [("recv", 0, "b")]]},
        {"programs": [[("isend", 1, "a")], []]},
        {"programs": [[("isend", 1, "a"), ("send", 1, "b"), ("wait", "a")], [("recv", 0, "b"), ("recv", 0, "a")]]},
    ],
    hidden=lambda rng: drawn(rng, ["send", "isend", "isend"], lambda kinds: "wait" in kinds),
)  # fmt: skip
ALL = ("all_reduce", (0, 1, 2))
group_cases = exercise.cases(
    run_ranks,
    public=[
        {"programs": [[ALL, ("send", 1, "a")], [ALL, ("recv", 0, "a")], [ALL]]},
        {"programs": [[ALL], [ALL], []]},
        {"programs": [[("all_reduce", (0, 1)), ALL], [ALL, ("all_reduce", (0, 1))], [ALL]]},
        {"programs": [[("all_reduce", (0, 1))], [("all_reduce", (0, 1))], [("all_reduce", (2, 3))], [("all_reduce", (2, 3))]]},
        {"programs": [[ALL], [("all_reduce", (1, 2))], [ALL]]},
    ],
    hidden=lambda rng: drawn(rng, ["all_reduce"], lambda kinds: kinds == {"all_reduce"}),
)  # fmt: skip
mixed_cases = exercise.cases(
    run_ranks,
    public=[],
    hidden=lambda rng: drawn(rng, ["send", "isend", "all_reduce"], lambda kinds: len(kinds) == 5, 60),
)


@exercise.helper
def replayed(programs, order):
    """Return the ranks that end their programs if operations end in the given order. Raises ValueError if an operation
    cannot end yet."""
    at, fired, received = [0] * len(programs), set(), set()

    def now(rank):
        return programs[rank][at[rank]] if at[rank] < len(programs[rank]) else ("finished",)

    def messages(source, to):
        """Return the messages that `source` has sent to `to`, in order. They include a send that has not ended."""
        begun = programs[source][: at[source] + 1]
        return [(source, k) for k, (kind, *what) in enumerate(begun) if kind in ("send", "isend") and what[0] == to]

    def ends_now(rank):
        """Return the operations that end together with this rank's current operation; none if it must wait."""
        kind, *what = now(rank)
        if kind == "isend":
            return {(rank, at[rank])}
        if kind == "wait":
            sent = [k for k, op in enumerate(programs[rank][: at[rank]]) if op[0] == "isend" and op[2] == what[0]]
            return {(rank, at[rank])} if sent and (rank, sent[-1]) in received else set()
        if kind == "all_reduce":
            return {(r, at[r]) for r in what[0]} if all(now(r) == now(rank) for r in what[0]) else set()
        if kind == "send":
            to = what[0]
            first = next((m for m in messages(rank, to) if m not in received), None)
            return ends_now(to) if first == (rank, at[rank]) and now(to)[:2] == ("recv", rank) else set()
        if kind == "recv":
            first = next((m for m in messages(what[0], rank) if m not in received), None)
            return (
                set() if first is None else {(rank, at[rank]), first} if first[1] == at[what[0]] else {(rank, at[rank])}
            )
        return set()

    def fire(together):
        for rank, k in together:
            if programs[rank][k][0] == "recv":
                source = programs[rank][k][1]
                received.add(next(m for m in messages(source, rank) if m not in received))
        fired.update(together)

    for entry in order:
        rank, k = entry
        if type(rank) is not int or not 0 <= rank < len(programs) or at[rank] != k or now(rank) == ("finished",):
            raise ValueError(f"{entry} is not the current operation of rank {rank}")
        if (rank, k) not in fired:
            together = ends_now(rank)
            if not together:
                raise ValueError(f"rank {rank} waits at {now(rank)}, operation {k}, which cannot end yet")
            fire(together)
        at[rank] += 1
    waiting = sorted(fired - set(order))
    more = waiting or [(rank, at[rank]) for rank in range(len(programs)) if ends_now(rank)]
    if more:
        raise ValueError(f"the order leaves out operation {more[0][1]} of rank {more[0][0]}, which can end")
    return [rank for rank, program in enumerate(programs) if at[rank] < len(program)]


@exercise.helper
def judge_runs(seen):
    """Require that every order is possible and complete, and that the stuck ranks are right."""
    for args, got, _ in seen.outcomes:
        programs = args["programs"]
        of = f"for the programs {programs} " if seen.public else "for programs that are not shown here "
        if got.error:
            raise Failure(
                f"{of}your function raised {got.error}",
                where=f"line {got.line}" if got.line else "",
                staff=f"{args}: {got.message}",
            )
        try:
            order, stuck = got.value
            order, stuck = [(rank, k) for rank, k in order], list(stuck)
        except (TypeError, ValueError):
            raise Failure(f"{of}your function does not return (order, stuck)", staff=f"{args}: {got.value}") from None
        try:
            due = replayed(programs, order)
        except ValueError as problem:
            told = f"in the order {order}: {problem}" if seen.public else "the order is impossible, or stops too early"
            raise Failure(of + told, staff=f"{args}: {problem}") from None
        if stuck != due:
            told = f"ranks {due} are stuck, not {stuck}" if seen.public else "the list of stuck ranks is wrong"
            raise Failure(of + told, staff=f"{args}: {due}, not {stuck}")


@exercise.check(message_cases, points=1, public=True)
def ranks_messages(seen):
    """run_ranks: programs with send and recv"""
    judge_runs(seen)


@exercise.check(isend_cases, points=0.75, public=True, after=ranks_messages)
def ranks_isend(seen):
    """run_ranks: programs that also have isend and wait"""
    judge_runs(seen)


@exercise.check(group_cases, points=0.75, public=True)
def ranks_groups(seen):
    """run_ranks: programs with all_reduce in groups"""
    judge_runs(seen)


@exercise.check(mixed_cases, points=0.5, after=[ranks_isend, ranks_groups])
def ranks_mixed(seen):
    """run_ranks: programs with all operations"""
    judge_runs(seen)


def _run(
    programs, *,
    send_blocks=True, isend_blocks=False, by_name=False, anybody=False, wait_waits=True, never=False, whole_world=False, newest=False, backwards=False,
    any_group=False, first_wait=False, to_the_end=False, polled=False, rounds=10**6, phases=(("send", "isend", "recv", "wait", "all_reduce"),),
):  # fmt: skip
    """Run the reference with one part changed."""
    ranks = range(len(programs))
    at, order, received, last, queue, sent = [0] * len(programs), [], set(), {}, [], set()

    def now(rank):
        return programs[rank][at[rank]] if at[rank] < len(programs[rank]) else ("finished",)

    def end(*who):
        for rank in who:
            order.append((rank, at[rank]))
            at[rank] += 1

    def meets(rank, group):
        if never:
            return [rank]
        group = ranks if whole_world else group
        if any_group:
            return group if all(now(r)[0] == "all_reduce" for r in group) else []
        return group if all(now(r) == now(rank) for r in group) else []

    def visit(rank, allowed):
        kind, *what = now(rank)
        if kind not in allowed:
            return
        message = (rank, at[rank])
        if kind in ("send", "isend") and message not in sent:
            sent.add(message)
            queue.append((*message, *what))
            last[rank, what[1]] = last.get((rank, what[1]), message) if first_wait else message
        free = (kind == "isend" and not isend_blocks) or (kind == "send" and not send_blocks)
        free |= polled and message in received
        if free or (kind == "wait" and (not wait_waits or last.get((rank, what[0])) in received)):
            end(rank)
        elif kind == "recv":
            fits = [
                m for m in queue if m[2] == rank and (anybody or m[0] == what[0]) and (not by_name or m[3] == what[1])
            ]
            if fits:
                taken = fits[-1 if newest else 0]
                queue.remove(taken)
                received.add(taken[:2])
                end(rank)
                if at[taken[0]] == taken[1] and not polled:
                    end(taken[0])
        elif kind == "all_reduce":
            end(*meets(rank, what[0]))

    def moves(visited):
        """Call the function, and return whether an operation began or ended."""
        before = len(order) + len(sent)
        visited()
        return len(order) + len(sent) > before

    def sweep(allowed):
        for rank in reversed(ranks) if backwards else ranks:
            while moves(lambda rank=rank: visit(rank, allowed)) and to_the_end:
                pass

    for allowed in phases:
        for _ in range(rounds):
            if not moves(lambda allowed=allowed: sweep(allowed)):
                break
    return order, [rank for rank in ranks if at[rank] < len(programs[rank])]


def ends(*mistakes):
    """Return a function for `gives`. The function requires that the same operations ended as in a run with one of the mistakes.

    It tries several orders in which a program may visit the ranks. If the right operations end, the order must be right, too.
    """

    def gives(seen):
        for args, got, want in seen.outcomes:
            programs, order, stuck = args["programs"], [tuple(entry) for entry in got.value[0]], list(got.value[1])
            visits = ({}, {"backwards": True}, {"to_the_end": True}, {"to_the_end": True, "polled": True})
            ways = [mistake | visit for mistake in mistakes for visit in visits]
            if sorted(order) not in [sorted(_run(programs, **way)[0]) for way in ways]:
                raise Failure("other operations end with this mistake")
            if stuck != [
                rank for rank, program in enumerate(programs) if (rank, len(program) - 1) not in order and program
            ]:
                raise Failure("the list of stuck ranks is not that of the order")
            try:
                right = sorted(order) != sorted(want.value[0]) or replayed(programs, order) == stuck
            except ValueError:
                right = False
            if not right:
                raise Failure("the right operations end, but not in this order")

    return gives


@exercise.misconception(fails=ranks_messages, breaks="with send and recv")
def ranks_send_on(programs):
    """Your send ends at once. A send waits until its message is received, so two ranks that both send first wait
    forever."""
    return _run(programs, send_blocks=False)


@exercise.misconception(form_of=ranks_send_on, breaks="with send and recv")
def ranks_send_on_from_the_last(programs):
    """Like `ranks_send_on`, but the last rank is visited first."""
    return _run(programs, send_blocks=False, backwards=True)


@exercise.misconception(fails=ranks_isend, gives=ends({"isend_blocks": True}), breaks="with isend and wait, too")
def ranks_isend_waits(programs):
    """Your isend waits until its message is received. It must end at once. Only `wait` waits."""
    return _run(programs, isend_blocks=True)


@exercise.misconception(fails=ranks_messages, gives=ends({"by_name": True}), breaks="A `recv` ignores names")
def ranks_match_names(programs):
    """You give a recv the message that has the recv's name. A recv ignores names: it takes the oldest message from its source rank."""
    return _run(programs, by_name=True)


@exercise.misconception(fails=ranks_isend, breaks=["the oldest message", "with isend and wait, too"])
def ranks_take_the_newest(programs):
    """You give a recv the newest message from its source rank. Give it the oldest message that no recv has received."""
    return _run(programs, newest=True)


@exercise.misconception(form_of=ranks_take_the_newest, breaks=["the oldest message", "with isend and wait, too"])
def ranks_take_the_newest_to_the_end(programs):
    """Like `ranks_take_the_newest`, but each rank runs until it has to wait."""
    return _run(programs, newest=True, to_the_end=True, polled=True)


@exercise.misconception(fails=ranks_messages, breaks="with send and recv")
def ranks_from_anybody(programs):
    """Your recv takes a message from any rank. It must take a message from its source rank, and wait while other messages arrive."""
    return _run(programs, anybody=True)


@exercise.misconception(fails=[ranks_messages, ranks_groups], gives=ends({"rounds": 1}), breaks="with send and recv")
def ranks_in_one_round(programs):
    """You visit the ranks once. A rank that waits can continue after another rank has moved: repeat until no rank moves."""
    return _run(programs, rounds=1)


@exercise.misconception(
    fails=ranks_isend, gives=ends({"first_wait": True}), breaks="this rank's latest `isend` with this name"
)
def ranks_wait_for_the_first(programs):
    """Your wait waits for the first isend with its name. It must wait for the latest isend with this name."""
    return _run(programs, first_wait=True)


@exercise.misconception(fails=ranks_isend, breaks="with isend and wait, too")
def ranks_wait_for_nothing(programs):
    """Your wait ends at once. It must end when the isend's message is received. If no rank receives this message, the waiting rank is stuck."""
    return _run(programs, wait_waits=False)


@exercise.misconception(form_of=ranks_wait_for_nothing, breaks="with isend and wait, too")
def ranks_wait_for_nothing_from_the_last(programs):
    """Like `ranks_wait_for_nothing`, but the last rank is visited first."""
    return _run(programs, wait_waits=False, backwards=True)


@exercise.misconception(fails=ranks_groups, breaks="with all_reduce in groups")
def ranks_reduce_alone(programs):
    """Your all_reduce ends without the other ranks. It must wait until every rank of its group has reached it."""
    return _run(programs, never=True)


@exercise.misconception(form_of=ranks_reduce_alone, breaks="with all_reduce in groups")
def ranks_reduce_alone_from_the_last(programs):
    """Like `ranks_reduce_alone`, but the last rank is visited first."""
    return _run(programs, never=True, backwards=True)


@exercise.misconception(
    fails=ranks_groups,
    gives=ends({"whole_world": True}, {"whole_world": True, "any_group": True}),
    breaks="with all_reduce in groups",
)
def ranks_reduce_all(programs):
    """Your all_reduce waits for all ranks. It must wait only for the ranks of its group."""
    return _run(programs, whole_world=True)


@exercise.misconception(fails=ranks_groups, breaks="with all_reduce in groups")
def ranks_reduce_any(programs):
    """You match an all_reduce of one group with an all_reduce of a different group. Ranks that enter two groups in opposite
    orders wait forever."""
    try:
        return _run(programs, any_group=True)
    except IndexError:
        return [], []


@exercise.misconception(fails=ranks_mixed, breaks="programs with all these operations")
def ranks_groups_first(programs):
    """You end all possible collectives, then the messages, and do not look again. A collective may wait for one of these messages: repeat until nothing moves."""
    return _run(programs, phases=(("all_reduce",), ("send", "isend", "recv", "wait")))


@exercise.misconception(fails=[ranks_messages, ranks_groups], breaks="with send and recv")
def ranks_one_after_the_other(programs):
    """You listed the ranks' programs one after the other. An operation that waits for a different rank ends after that rank's operation."""
    order, stuck = _run(programs)
    return sorted(order), stuck


@exercise.misconception(fails=ranks_messages, breaks="`stuck` is exact")
def ranks_stuck_in_circles(programs):
    """You named only the ranks that wait for each other. A rank is also stuck if it waits for a finished rank or for a stuck rank."""
    order, stuck = _run(programs)
    ended = [sum(1 for rank, _ in order if rank == r) for r in range(len(programs))]
    waits = {r: programs[r][ended[r]] for r in stuck}
    peer = {r: op[1] if isinstance(op[1], int) else None for r, op in waits.items()}
    return order, [r for r in stuck if peer[r] is None or peer.get(peer[r]) == r]


@exercise.misconception(fails=ranks_isend, breaks="with isend and wait, too")
def ranks_stuck_by_isend(programs):
    """You count a rank as stuck if no rank receives its isend. It is stuck only if it waits for that isend."""
    order, stuck = _run(programs)
    ended, lost = set(order), set(stuck)
    for r, program in enumerate(programs):
        for k, op in enumerate(program):
            if op[0] == "isend" and (r, k) in ended:
                pair = [(r, j) for j, o in enumerate(program) if o[0] in ("send", "isend") and o[1] == op[1]]
                got = sum(1 for q, j in ended if q == op[1] and programs[q][j][:2] == ("recv", r))
                if pair.index((r, k)) >= got:
                    lost.add(r)
    return order, sorted(lost)


@exercise.alternative(of=run_ranks)
def by_events(programs):
    """Match messages by number before the run. Operations that end together are one event; events run from the last rank on."""
    nth, ops = {}, [(r, k) for r, program in enumerate(programs) for k in range(len(program))]
    for r, k in ops:
        kind, peer = programs[r][k][0], programs[r][k][1]
        if kind in ("send", "isend", "recv"):
            pair = ("to", r, peer) if kind != "recv" else ("from", peer, r)
            nth[pair] = [*nth.get(pair, []), (r, k)]
    partner = {}
    for (way, a, b), sends in nth.items():
        if way == "to":
            for one, other in zip(sends, nth.get(("from", a, b), []), strict=False):
                partner[one], partner[other] = other, one
    at, done, order = [0] * len(programs), set(), []

    def together(op):
        r, k = op
        kind, what = programs[r][k][0], programs[r][k][1]
        if kind == "isend":
            return [op]
        if kind == "all_reduce":
            here = [(q, at[q]) for q in what if at[q] < len(programs[q]) and programs[q][at[q]] == programs[r][k]]
            return here if len(here) == len(what) else []
        if kind == "wait":
            sent = [(r, j) for j in range(k) if programs[r][j][0] == "isend" and programs[r][j][2] == what][-1:]
            return [op] if sent and partner.get(sent[0]) in done else []
        other = partner.get(op)
        if other is None:
            return []
        send = op if kind == "send" else other
        if programs[send[0]][send[1]][0] == "isend":
            return [op] if send in done else []
        return [op, other] if other == (other[0], at[other[0]]) else []

    while True:
        ready = [
            found
            for r in reversed(range(len(programs)))
            if at[r] < len(programs[r]) and (found := together((r, at[r])))
        ]
        if not ready:
            return order, [r for r in range(len(programs)) if at[r] < len(programs[r])]
        for r, k in reversed(ready[0]):
            order.append((r, k))
            done.add((r, k))
            at[r] += 1


@exercise.misconception(of=blocking_ring_time)
def ring_all_at_once(gpu, X, V):
    """You let all ranks send at the same time. A send ends when it is received, and at first only rank 0 receives. The other messages follow one by one."""
    return V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=blocking_ring_time)
def ring_sends_then_receives(gpu, X, V):
    """You let all ranks send at the same time, and then receive. A send ends when it is received, and at first only rank 0 receives. The other messages follow one by one."""
    return 2 * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=blocking_ring_time)
def ring_one_less(gpu, X, V):
    """You counted all sends but one. Rank 0 also has to send, after rank 1 has finished."""
    return (X - 1) * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=blocking_ring_time)
def ring_there_and_back(gpu, X, V):
    """You counted sends and receives. A send and its receive are one message."""
    return 2 * X * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=alternating_ring_time)
def ring_always_even(gpu, X, Y, V):
    """You took two rounds for each ring. With an odd number of ranks, the last rank and rank 0 are neighbours and both send first: this needs a third round."""
    return 4 * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=alternating_ring_time)
def ring_never_waits(gpu, X, Y, V):
    """You took one round for each ring, as with isend. Here half of the ranks receive before they send."""
    return 2 * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=alternating_ring_time)
def ring_odd_one_by_one(gpu, X, Y, V):
    """You let the sends of the odd ring follow one by one. Pairs of ranks are busy at the same time. Only the last rank and rank 0 need a third round."""
    return (2 + Y) * V * 1e9 / GPUS[gpu].egress


@exercise.misconception(of=alternating_ring_time)
def ring_still_one_by_one(gpu, X, Y, V):
    """You let the sends follow one by one. Pairs of ranks are busy at the same time."""
    return (X + Y) * V * 1e9 / GPUS[gpu].egress


exercise.scenario(blocking_ring_time, lambda gpu, X, V: Scenario(mesh={"pp": X}))
exercise.scenario(alternating_ring_time, lambda gpu, X, Y, V: Scenario(mesh={"pp": X}))

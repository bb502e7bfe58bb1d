# pyright: reportOptionalOperand=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportArgumentType=false
from grader.hardware import GPUS


def engine(
    programs, *, send_ends=False, isend_waits=False, oldest=True, alone=False, world=False, once=False, wait=True
):
    at, order, mail, taken, names = [0] * len(programs), [], {}, set(), {}
    posted = set()

    def op(r):
        return programs[r][at[r]] if at[r] < len(programs[r]) else None

    def done(r):
        order.append((r, at[r]))
        at[r] += 1

    while True:
        moved = False
        for r in reversed(range(len(programs))):
            if (now := op(r)) is None:
                continue
            if now[0] in ("send", "isend") and (r, at[r]) not in posted:
                posted.add((r, at[r]))
                mail.setdefault((r, now[1]), []).append((r, at[r]))
                names[r, now[2]] = (r, at[r])
                moved = True
            free = (now[0] == "isend" and not isend_waits) or (now[0] == "send" and send_ends)
            if free or (now[0] == "wait" and (not wait or names.get((r, now[1])) in taken)):
                done(r)
                moved = True
            elif now[0] == "recv" and mail.get((now[1], r)):
                which = mail[now[1], r].pop(0 if oldest else -1)
                taken.add(which)
                done(r)
                if at[which[0]] == which[1]:
                    done(which[0])
                moved = True
            elif now[0] == "all_reduce":
                group = range(len(programs)) if world else now[1]
                if alone or all(op(o) == now for o in group):
                    for o in [r] if alone else group:
                        done(o)
                    moved = True
        if not moved or once:
            return order, [r for r in range(len(programs)) if op(r) is not None]


def send_that_ends_at_once(programs):
    """run_ranks: ranks_send_on"""
    return engine(programs, send_ends=True)


def isend_that_waits(programs):
    """run_ranks: ranks_isend_waits"""
    return engine(programs, isend_waits=True)


def newest_first(programs):
    """run_ranks: ranks_take_the_newest"""
    return engine(programs, oldest=False)


def reduce_alone(programs):
    """run_ranks: ranks_reduce_alone"""
    return engine(programs, alone=True)


def reduce_with_the_world(programs):
    """run_ranks: ranks_reduce_all"""
    return engine(programs, world=True)


def one_round(programs):
    """run_ranks: ranks_in_one_round"""
    return engine(programs, once=True)


def wait_that_waits_for_nothing(programs):
    """run_ranks: ranks_wait_for_nothing"""
    return engine(programs, wait=False)


def nobody_is_stuck(programs):
    """run_ranks: none"""
    return engine(programs)[0], []


class _World:
    def __init__(self, programs, eager=False, names=False, newest=False, first=False, everybody=False):
        self.programs, self.at = programs, [0] * len(programs)
        self.eager, self.names, self.newest, self.first, self.everybody = eager, names, newest, first, everybody
        self.order = []
        self.mail = {}  # (source, to): list of [name, received]
        self.sent = [{} for _ in programs]  # name: messages of isends
        self.offered = [None] * len(programs)

    def now(self, r):
        return self.programs[r][self.at[r]] if self.at[r] < len(self.programs[r]) else None

    def end(self, r):
        self.order.append((r, self.at[r]))
        self.at[r] += 1
        self.offered[r] = None

    def move(self, r):
        op = self.now(r)
        if op is None:
            return False
        if op[0] in ("send", "isend"):
            posted = self.offered[r] is None
            if posted:
                message = [op[2], False]
                self.mail.setdefault((r, op[1]), []).append(message)
                self.offered[r] = message
                if op[0] == "isend":
                    self.sent[r].setdefault(op[2], []).append(message)
            if op[0] == "isend" or self.eager or self.offered[r][1]:
                self.end(r)
                return True
            return posted
        if op[0] == "wait":
            every = self.sent[r].get(op[1], [])
            if every and every[0 if self.first else -1][1]:
                self.end(r)
                return True
            return False
        if op[0] == "recv":
            open_ = [m for m in self.mail.get((op[1], r), []) if not m[1]]
            if self.names:
                open_ = [m for m in open_ if m[0] == op[2]]
            if not open_:
                return False
            open_[-1 if self.newest else 0][1] = True
            self.end(r)
            return True
        group = range(len(self.programs)) if self.everybody else op[1]
        if all(
            self.now(m) is not None
            and self.now(m)[0] == "all_reduce"
            and (self.everybody or set(self.now(m)[1]) == set(op[1]))
            for m in group
        ):
            for m in list(group):
                self.end(m)
            return True
        return False

    def result(self):
        return self.order, [r for r in range(len(self.programs)) if self.at[r] < len(self.programs[r])]


def _to_the_end(programs, **how):
    world = _World(programs, **how)
    while any([world.move(r) for r in range(len(programs))]):
        pass
    return world.result()


def sends_into_a_buffer(programs):
    """run_ranks: ranks_send_on"""
    return _to_the_end(programs, eager=True)


def receives_by_name(programs):
    """run_ranks: ranks_match_names"""
    return _to_the_end(programs, names=True)


def waits_for_the_first_of_the_name(programs):
    """run_ranks: ranks_wait_for_the_first"""
    return _to_the_end(programs, first=True)


def reduces_over_all_ranks(programs):
    """run_ranks: ranks_reduce_all, ranks_reduce_any"""
    return _to_the_end(programs, everybody=True)


def receives_the_newest(programs):
    """run_ranks: ranks_take_the_newest"""
    return _to_the_end(programs, newest=True)


def a_single_pass_over_the_ranks(programs):
    """run_ranks: ranks_in_one_round"""
    world = _World(programs)
    for r in range(len(programs)):
        while world.move(r):
            pass
    return world.result()


def send_and_receive_at_once(gpu, X, V):
    """blocking_ring_time: ring_sends_then_receives"""
    return 2 * V * 1e9 / GPUS[gpu].egress


def two_rounds_in_each_ring(gpu, X, Y, V):
    """alternating_ring_time: ring_always_even"""
    return 4 * V * 1e9 / GPUS[gpu].egress


def odd_ring_one_after_another(gpu, X, Y, V):
    """alternating_ring_time: ring_odd_one_by_one"""
    return (2 + Y) * V * 1e9 / GPUS[gpu].egress

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

seen = []


def twice(n):
    seen.append(n)
    if len(seen) > 21 or n == 123457:
        raise ValueError(f"CAN" f"ARY {seen[-1]}")
    return 2 * n

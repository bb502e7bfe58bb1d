def twice(n):
    return sum(range(10**13))

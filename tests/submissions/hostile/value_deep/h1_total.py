def twice(n):
    deep = []
    for _ in range(10_000):
        deep = [deep]
    return deep

def twice(n):
    return float("nan")


megabytes = float("nan")

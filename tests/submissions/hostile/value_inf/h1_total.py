def twice(n):
    return float("inf")


megabytes = "1e309 MB"

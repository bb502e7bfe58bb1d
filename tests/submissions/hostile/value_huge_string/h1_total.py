def twice(n):
    return "9" * 500_000


megabytes = "1" * 10_000_000

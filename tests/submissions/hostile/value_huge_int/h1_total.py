def twice(n):
    return 10**400 if n % 2 else 1 << 4_000_000


megabytes = 10**400

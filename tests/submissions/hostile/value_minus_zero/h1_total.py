def twice(n):
    return -0.0


megabytes = -10

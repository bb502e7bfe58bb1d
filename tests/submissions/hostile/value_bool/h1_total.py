def twice(n):
    return True


megabytes = True

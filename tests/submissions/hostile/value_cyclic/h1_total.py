loop = []
loop.append(loop)


def twice(n):
    return loop


megabytes = {"magnitude": loop}

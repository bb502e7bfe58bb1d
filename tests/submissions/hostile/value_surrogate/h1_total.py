def total(a, *, mesh):
    raise ValueError("half \ud800 a pair")


def twice(n):
    raise type("Half\udfff", (Exception,), {})("\udc00")


megabytes = "\ud83d"

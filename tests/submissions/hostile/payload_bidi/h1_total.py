megabytes = 1 # ‮ 01 = setybagem ⁦


def twice(n):
    raise ValueError("‮txt.exe ⁦ ok")

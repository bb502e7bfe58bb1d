raise RuntimeError(open("@TARGET@/solutions/h1_total.py").read())

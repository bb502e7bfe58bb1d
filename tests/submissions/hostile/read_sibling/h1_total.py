raise RuntimeError(open("@TARGET@/submitted/bob/h1_total.py").read())

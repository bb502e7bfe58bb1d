import sys
sys.path.insert(0, "@TARGET@/solutions")
import solutions_h1
raise RuntimeError(solutions_h1.SECRET)

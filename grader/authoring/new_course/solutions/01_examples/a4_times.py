"""# A4 How long does it take?

Two questions, and no function to write. Answers may have a unit: `"559 us"` and `"0.559 ms"` are equal answers.
"""

from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, Scenario
from grader.hardware import all_gather_time, hbm_time, latency

exercise = Exercise()


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "J": [8192, 14336], "X": [4, 8]},
    model="bidirectional ring, bandwidth only: V / W, with W for both directions of a link",
)
def gather_time(chip, I, J, X):
    """The rows of `A`, bfloat16[{{ I }}, {{ J }}], are sharded over a ring of {{ X }} {{ chip }} chips. How long does
    an all-gather of `A` take?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.misconception(of=gather_time)
def gather_one_way(chip, I, J, X):
    """You used one direction of each link. On a ring, data flows in both directions."""
    return 2 * all_gather_time(2 * I * J, X, chip)


exercise.scenario(
    gather_time,
    lambda chip, I, J, X: Scenario(chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x"))], least=latency(X)),
)


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v5e", "v5p"], "I": [4096, 8192], "J": [2048, 5120], "X": [4, 8]},
    model="HBM bandwidth only: time = bytes / bandwidth",
)
def load_time(chip, I, J, X):
    """The rows of `A`, float32[{{ I }}, {{ J }}], are sharded over {{ X }} {{ chip }} chips. How long does one chip
    need to read its block from HBM?"""
    return hbm_time(4 * I * J / X, chip)


@exercise.misconception(of=load_time)
def load_of_all(chip, I, J, X):
    """You divided the whole array's bytes by the bandwidth of one chip. A chip reads only its own block."""
    return hbm_time(4 * I * J, chip)


exercise.scenario(
    load_time,
    lambda chip, I, J, X: Scenario(chip=chip, mesh={"x": X}, arrays=[((I, J), P("x"))], holds=4 * I * J / X),
)

"""# A4 How long does it take?

Two questions and nothing to write. Answers may carry a unit: `"559 us"` and `"0.559 ms"` are the same.
"""

from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, Scenario
from grader.hardware import all_gather_time, hbm_time, latency

exercise = Exercise()


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "J": [8192, 14336], "X": [4, 8]},
    model="bidirectional ring, bandwidth only: V / W, W both directions of a link",
)
def gather_time(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}], its rows cut over a ring of {{ X }} {{ chip }} chips. How long is the all-gather?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.misconception(of=gather_time)
def gather_one_way(chip, I, J, X):
    """You used one direction of the link; on a ring data flows both ways."""
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
    """`A` is float32[{{ I }}, {{ J }}], its rows cut over {{ X }} {{ chip }} chips. How long does one chip need to read its block
    from HBM?"""
    return hbm_time(4 * I * J / X, chip)


@exercise.misconception(of=load_time)
def load_of_all(chip, I, J, X):
    """You divided the whole array's bytes by the bandwidth of one chip. It reads its own block."""
    return hbm_time(4 * I * J, chip)


exercise.scenario(
    load_time,
    lambda chip, I, J, X: Scenario(chip=chip, mesh={"x": X}, arrays=[((I, J), P("x"))], holds=4 * I * J / X),
)

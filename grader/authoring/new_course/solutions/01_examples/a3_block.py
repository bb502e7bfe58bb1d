"""# A3 The rows that a device holds

**Task.** Write `block(rows, devices, index)` in plain Python. It splits `rows` rows into equal blocks, one for each
device, and returns `(start, stop)`: the first row of device number `index`, and the row after its last row. Rows and
devices are numbered from 0. Raise `ValueError` if the rows cannot be split into equal blocks.

**Small case.** 12 rows on 4 devices: device 2 holds the rows 6, 7 and 8, so `block(12, 4, 2)` is `(6, 9)`.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(
    hints=[
        "How many rows does each device hold?",
        "`index` blocks come before the block of device number `index`.",
        "size = rows // devices; return index * size, (index + 1) * size",
    ]
)
def block(rows, devices, index):
    """Return the rows that one device holds, as (first row, row after the last).

    Args: rows, devices and index are ints.
    Returns: (start, stop).
    """
    if rows % devices:
        raise ValueError(f"{rows} rows cannot be cut into {devices} equal blocks")
    size = rows // devices
    return index * size, (index + 1) * size


def drawn(rng, spare):
    """Yield cases. ``rows`` is ``spare`` more than a multiple of ``devices``."""
    for _ in range(20):
        devices = int(rng.integers(2, 9))
        rows = devices * int(rng.integers(2, 9)) + spare
        yield {"rows": rows, "devices": devices, "index": int(rng.integers(1, devices))}


even = exercise.cases(block, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=lambda rng: drawn(rng, 0))
uneven = exercise.cases(block, public=[{"rows": 13, "devices": 4, "index": 2}], hidden=lambda rng: drawn(rng, 1))


@exercise.check(even, points=1, public=True)
def block_even(seen):
    """block: start and stop of a device's rows"""
    expect_outcomes(seen, ints=True)


@exercise.check(uneven, points=1, public=True, after=block_even)
def block_uneven(seen):
    """block: ValueError when there are no equal blocks"""
    expect_outcomes(seen, ints=True)


@exercise.misconception(fails=block_even)
def block_with_last_row(rows, devices, index):
    """You returned the last row that the device holds. Python's ranges end before their stop."""
    if rows % devices:
        raise ValueError("uneven")
    return index * rows // devices, (index + 1) * rows // devices - 1


@exercise.misconception(fails=block_uneven)
def block_rounded(rows, devices, index):
    """You rounded an uneven block. All devices must hold equal blocks."""
    return index * (rows // devices), (index + 1) * (rows // devices)

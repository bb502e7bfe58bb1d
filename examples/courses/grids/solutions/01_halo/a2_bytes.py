"""# A2 How much a halo costs

A grid of float64[N, N] is cut into X · Y equal blocks, one for each device, and each step sends one edge of every block to each of its four
neighbours. There is nothing to write here: answer the questions with your own numbers.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [8192, 12288, 16384, 20480, 24576, 28672]
CUTS = [(8, 2), (16, 2), (16, 4), (32, 2), (32, 4), (64, 4)]


@exercise.number(
    points=1,
    unit="KiB",
    params={"N": SIZES, "cut": CUTS},
    model="every edge is sent once each way",
    hints=["How long is each of the four edges?", "A block has N/X columns and N/Y rows.", "2 · 8 bytes · (N/X + N/Y)"],
)
def halo_bytes(N, cut):
    """The grid has N = {{ N }} and is cut into X · Y = {{ cut[0] }} · {{ cut[1] }} blocks. How many KiB does a device send in one step?"""
    X, Y = cut
    return 2 * 8 * (N / X + N / Y)


@exercise.misconception(of=halo_bytes)
def halo_one_way(N, cut):
    """You counted one edge of each pair: a block has two neighbours along each axis."""
    return halo_bytes(N=N, cut=cut) / 2


@exercise.misconception(of=halo_bytes)
def halo_of_strips(N, cut):
    """You cut the grid into strips: then the two edges have N elements each."""
    return 2 * 8 * N


exercise.scenario(halo_bytes, lambda N, cut: Scenario(mesh={"x": cut[0], "y": cut[1]}, arrays=[((N, N), ("y", "x"))]))


@exercise.table(
    points=2,
    columns={"sent": "KiB", "held": "MiB"},
    partial=True,
    rows=["strips", "blocks"],
    params={"N": SIZES, "D": [64, 256, 1024]},
    hints=[
        "How many neighbours has a strip?",
        "A strip has 2 edges, of N elements.",
        "A block has 4 edges, of N / sqrt(D) elements.",
    ],
)
def strips_or_blocks(N, D):
    """The grid has N = {{ N }}, on D = {{ D }} devices. What does a device send in one step, and what does it hold without its halo, if the grid
    is cut into D strips of whole rows, or into square blocks?"""
    held = 8 * N**2 / D
    return {"strips": {"sent": 2 * 8 * N, "held": held}, "blocks": {"sent": 4 * 8 * N / D**0.5, "held": held}}


@exercise.misconception(of=strips_or_blocks)
def halo_of_two_edges(N, D):
    """A block has four edges: two along each axis."""
    right = strips_or_blocks(N=N, D=D)
    return {**right, "blocks": {**right["blocks"], "sent": right["blocks"]["sent"] / 2}}


exercise.scenario(strips_or_blocks, lambda N, D: Scenario(mesh={"x": D}, arrays=[((N, N), ("x", None))]))


@exercise.choice(
    points=0.5,
    params={"change": ["twice", "half"]},
    options={
        "quarter": "a quarter",
        "half": "half",
        "double": "twice as much",
        "fourfold": "four times as much",
    },
    hints=["What happens to an edge, and what to a block?"],
)
def what_scales(change):
    """The same grid is cut among {{ change }} as many devices along each axis. How many bytes does each device send in a step, compared with before?"""
    return "half" if change == "twice" else "double"


@exercise.misconception(of=what_scales)
def scales_like_blocks(change):
    """You compared the blocks: along each axis an edge changes by 2 while a block changes by 4."""
    return "quarter" if change == "twice" else "fourfold"


@exercise.several(
    points=1,
    options={
        "edges": "the length of a block's edges",
        "width": "the width of the halo",
        "dtype": "the bytes of an element",
        "steps": "the number of steps so far",
        "values": "the values in the grid",
    },
    partial=True,
    hints=["What is in a message, and what is not?"],
)
def what_sets_the_bytes():
    """Which of these change the bytes that a device sends in one step?"""
    return ["edges", "width", "dtype"]


@exercise.misconception(of=what_sets_the_bytes)
def halo_of_one_row_only():
    """You left out the width: a stencil that reaches two rows away needs a halo of two rows."""
    return ["edges", "dtype"]


@exercise.order(
    points=1,
    items={
        "rim": "compute the rim of the block, which reads the halo",
        "wait": "wait for the neighbours' edges",
        "send": "send the own edges",
        "inner": "compute the inner part of the block, which reads no halo",
    },
    partial=True,
    hints=["What can a device do while the edges travel?"],
)
def overlapped_step():
    """In which order does a device do these, so that most of the exchange runs beside compute?"""
    return ["send", "inner", "wait", "rim"]


@exercise.misconception(of=overlapped_step)
def waits_before_computing():
    """You waited before the inner part: it reads no halo, so it can run while the edges travel."""
    return ["send", "wait", "inner", "rim"]


@exercise.formula(
    points=1,
    symbols={"N": SIZES, "X": [8, 16, 32, 64], "Y": [2, 3, 4, 5], "h": [1, 2, 3]},
    hints=["How many elements has one edge of N/X columns, h rows wide?", "There are two edges along each axis."],
)
def halo_formula():
    """A grid of float64[N, N] is cut into X · Y blocks, and the halo is h elements wide. How many bytes does a device send in one step? Ignore
    the corners."""
    return "2*8*h*(N/X + N/Y)"


@exercise.misconception(of=halo_formula)
def halo_formula_of_elements():
    """You counted elements: each has 8 bytes."""
    return "2*h*(N/X + N/Y)"


@exercise.misconception(of=halo_formula)
def halo_formula_one_way():
    """You counted one edge of each pair: a block has two neighbours along each axis."""
    return "8*h*(N/X + N/Y)"


@exercise.written(
    points=2,
    rubric={
        "edges": (1, "the bytes sent follow the edges, and the arithmetic follows the area of the block"),
        "ratio": (1, "so the share of communication grows as blocks shrink"),
    },
    hints=["Compare how edge and block grow."],
)
def why_small_blocks_wait():
    """Why does the exchange take a larger part of each step when the same grid is cut among more devices? Two sentences."""
    return "A block's arithmetic shrinks like its area and its halo like its edge. So the exchange shrinks more slowly."

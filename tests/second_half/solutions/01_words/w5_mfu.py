"""# W5 Model FLOPs utilization

*Model FLOPs utilization* (MFU) is the useful FLOPs of a training step, divided by the FLOPs that the chips can do in
the time of the step. The useful FLOPs are 6 for each parameter and token. FLOPs that the backward pass repeats are not
useful. All arithmetic is in bfloat16; 1 TFLOP is 10^12 FLOP.
"""

from grader.exercise import Exercise, Scenario
from grader.hardware import CHIPS

exercise = Exercise()
TOKENS = [2, 3, 4, 5, 6, 8, 10, 12]


@exercise.number(
    points=1,
    unit="TFLOP",
    params={"N": [7, 13, 34, 70], "T": TOKENS},
    model="6 FLOPs for each parameter and token",
    hints=["2 forward, 4 backward."],
)
def useful(N, T):
    """A model has {{ N }} billion parameters. How many useful TFLOP has a training step on {{ T }} million tokens?"""
    return 6 * N * 1e9 * T * 1e6


exercise.scenario(useful, lambda N, T: Scenario())


@exercise.misconception(of=useful)
def forward_only(N, T):
    """You counted only the forward pass. The backward pass takes twice as many FLOPs."""
    return 2 * N * 1e9 * T * 1e6


@exercise.table(
    points=2,
    columns={"useful": "TFLOP", "time": "s", "mfu": "%"},
    params={"chip": ["v5e", "v5p", "v6e"], "N": [7, 13], "T": [2, 3, 4], "slow": [1.6, 2, 2.4]},
    model="6 FLOPs for each parameter and token, 8 executed with everything computed again; 256 chips",
)
def utilization(chip, N, T, slow):
    """256 {{ chip }} chips train a model of {{ N }} billion parameters on {{ T }} million tokens a step. They compute
    every layer again for the backward pass, so 8 FLOPs are executed for each parameter and token. A step takes
    {{ slow }} times as long as these FLOPs take at the peak rate. What is the useful arithmetic of a step, its time,
    and the MFU?
    """
    useful, peak = 6 * N * 1e9 * T * 1e6, 256 * CHIPS[chip].bf16
    time = slow * useful * 8 / 6 / peak
    return {"useful": useful, "time": time, "mfu": useful / time / peak}


exercise.scenario(utilization, lambda chip, N, T, slow: Scenario(chip=chip, mesh={"dp": 256}))


@exercise.misconception(of=utilization)
def hardware_utilization(chip, N, T, slow):
    """You counted repeated FLOPs. That gives the hardware utilization; the MFU counts only useful FLOPs."""
    right = utilization(chip=chip, N=N, T=T, slow=slow)
    return {**right, "mfu": 1 / slow}


@exercise.misconception(of=utilization)
def of_one_chip(chip, N, T, slow):
    """You computed the time of one chip, but 256 chips share the FLOPs."""
    right = utilization(chip=chip, N=N, T=T, slow=slow)
    return {**right, "time": 256 * right["time"]}


@exercise.choice(
    points=0.5,
    params={"chip": ["v5e", "v5p", "v6e"], "B": [8, 64, 1024, 4096]},
    options={
        "arithmetic": "arithmetic",
        "hbm": "reading the weights from HBM",
        "ici": "sending activations over the links between chips",
    },
    model="weights are read once; 2 FLOPs for each weight and token; nothing is sent",
)
def bound_by(chip, B):
    """One {{ chip }} chip multiplies {{ B }} tokens with a far larger bfloat16 weight matrix. What bounds the time?"""
    row = CHIPS[chip]
    return "arithmetic" if 2 * B / row.bf16 > 2 / row.hbm_bw else "hbm"


exercise.scenario(bound_by, lambda chip, B: Scenario())


@exercise.misconception(of=bound_by)
def wrong_way_round(chip, B):
    """With few tokens, reading a weight takes longer than its arithmetic. With many tokens, reading is shorter."""
    return "hbm" if bound_by(chip=chip, B=B) == "arithmetic" else "arithmetic"

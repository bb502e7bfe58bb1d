import math

from grader.hardware import CHIPS


def of_one_chip(chip, N, T):
    """fsdp_least_batch: fsdp_batch_per_chip"""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both / 3


def one_axis(chip, N, T):
    """fsdp_least_batch: fsdp_batch_one_axis"""
    return N * CHIPS[chip].bf16 / CHIPS[chip].ici_both


def by_d(chip, D, F):
    """tensor_most_chips: tensor_by_model_width"""
    return D / (CHIPS[chip].bf16 / CHIPS[chip].ici_both)


def axes_forgotten(B, F, N):
    """best_fsdp_chips: best_fsdp_one_axis"""
    return math.sqrt(B * N / F)

"""An honest program."""

import math

import numpy as np


def groups(mesh, axes):
    names, shape = zip(*mesh, strict=True)
    moved = [names.index(axis) for axis in axes]
    size = math.prod(shape[axis] for axis in moved)
    ranks = np.moveaxis(np.arange(math.prod(shape)).reshape(shape), moved, range(-len(moved), 0))
    return ranks.reshape(-1, size).tolist()

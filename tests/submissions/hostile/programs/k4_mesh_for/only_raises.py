"""The program raises ValueError for every input.

kind: only raises
earns: 0 of 2
fails: mesh_sizes mesh_near mesh_inner mesh_refused rank_groups axes_by_name
says: it raised ValueError
"""


def mesh_for(strategies, devices, node):
    raise ValueError


def groups(mesh, axes):
    raise ValueError


def axes_for(what, mesh):
    raise ValueError

"""Starting, confining and ending processes: tiers, filters, limits, the scratch folder, readable files.

In: a worker's role (trace, run or read, see ``main``) and limits. Out: frames of untrusted answers. A *tier* is a kind
of sandbox, see ``tiers``. The code of this package imports only ``wire`` and knows no exercises.
"""

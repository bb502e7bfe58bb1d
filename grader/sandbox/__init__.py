"""Starting, confining and ending processes: tiers, filters, limits, the scratch folder, readable files.

The package gets a worker's role (trace, run or read, see ``main``) and limits. It returns frames of untrusted
answers, the messages of ``wire.frames``. A *tier* is a kind of sandbox, see ``tiers``. The code of this package
imports only ``wire`` and knows no exercises.
"""

"""Starting, confining and ending processes: tiers, filters, limits, the scratch folder, readable files.

In: a role (trace or run) and limits. Out: frames of untrusted answers. A *tier* is a kind of sandbox, by its strength
(``tiers``). This package knows no exercises and imports only ``wire``.
"""

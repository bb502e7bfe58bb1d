"""Starting, confining and ending processes: tiers, filters, limits, the scratch folder, readable files.

In: a role and its limits. Out: frames of untrusted answers. It knows no exercises and imports ``wire``.
"""

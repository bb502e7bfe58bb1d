"""A report as text, pictures, pages and tables.

In: reports (``common.result``). Out: something to look at. Everything printed may derive from a learner, so all is cleaned here.
"""

"""A report as text, pictures, pages and tables.

In: reports (``common.result``), and of a class their ``summary``. Out: something to look at, from ``terminal``,
``pages`` and ``tables``.

All text in a report may come from a learner. It passes ``untrusted.clean`` once, on its way out: the template
environment of ``pages`` applies it to every string a template prints (and escapes it), ``paper.Paper.text`` to every
string for a terminal (as plain ``rich.text.Text``, never as markup), and ``tables.csv_cell`` to every cell. What only
staff may see is taken away by ``wording.seen_by``, before any renderer looks.
"""

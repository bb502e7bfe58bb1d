"""Reports as text, pictures, pages and tables.

The inputs are reports (``common.result``) and, for a class, their ``summary``. The output comes from ``terminal``,
``pages`` and ``tables``.

Any text in a report may come from a student. It passes ``untrusted.clean`` once, on its way out: the template
environment of ``pages`` cleans and escapes every string that a template prints, ``paper.Paper.text`` cleans every
string for a terminal (plain ``rich.text.Text``, never markup), and ``tables.csv_cell`` cleans every cell. Before
rendering, ``wording.seen_by`` removes everything that only staff may see.
"""

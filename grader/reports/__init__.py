"""Reports as text, pictures, pages and tables.

The inputs are reports (``common.result``) and, for a class, the ``summary`` of its reports. ``terminal``, ``pages`` and
``tables`` write the output.

Any text in a report may come from a student, so the renderers clean every text with ``untrusted.clean``:

- The template environment of ``pages`` cleans and escapes every string that a template prints.
- ``paper.Paper.text`` cleans every string for a terminal (plain ``rich.text.Text``, never markup).
- ``tables.csv_cell`` cleans every cell.

Before rendering for students, ``wording.seen_by`` removes everything that only staff may see.
"""

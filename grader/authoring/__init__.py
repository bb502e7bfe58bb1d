"""Tools for course authors: the tests of a course (``verify``, ``mutants``), and templates of courses and exercises."""

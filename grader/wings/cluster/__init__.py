"""A class graded by the workers of a Dask cluster, with the reports of one machine.

In: submissions and a course, here. Out: reports, here; this process alone writes any. What travels to a worker and back is JSON
(``parcel``); a worker confines, proves itself by the canary, and grades one submission at a time for each of its threads (``there``).
Who gets what, and what becomes of work whose worker is gone, is decided here (``dispatch``). Only ``link`` knows Dask.
"""

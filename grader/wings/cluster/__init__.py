"""Grading a class with the workers of a Dask cluster. The reports equal those of one machine.

In: submissions and a course. Out: reports, written only by this process. Data travel as JSON (``parcel``). A worker
confines code, proves itself with the canary, and grades one submission per thread at a time (``there``). ``dispatch``
assigns submissions to workers and reassigns those of lost workers. Only ``link`` knows Dask.
"""

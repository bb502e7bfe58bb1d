"""Grade a class with the workers of a Dask cluster. The reports equal the reports of a single machine.

Workers get submissions and a course, and return reports, which only this process writes to disk. Data travel as JSON
(``parcel``). A worker confines code, grades the course's solutions first (the canary), and grades one submission per
thread at a time (``there``). ``dispatch`` assigns submissions to workers, and reassigns submissions of lost workers.
Only ``link`` imports Dask.
"""

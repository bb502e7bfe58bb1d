import sqlite3
raise RuntimeError(sqlite3.connect("file:@TARGET@/gradebook.db?mode=ro", uri=True).execute("select * from grades").fetchall())

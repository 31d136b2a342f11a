"""Delta tables: versions, rows, changes, commits.

tables.py    a Delta table by its location: identity, versions, rows of a version
changes.py   what changed between two versions
commits.py   what a commit says about itself: frontier, data change, author
layout.py    the stored form of a stream table: the query's columns and, if needed, `__st`
apply.py     a change → one commit
shared_changes.py  small changes, read once for all who need them
removals.py  rows to remove → deletion vectors
files.py     the files of a version as the log describes them
following.py the files of a version, told by an earlier one and the commits since
vectors.py   deletion vectors, read together and kept
marks.py     whether a version of a local table is still the newest one
parquet.py   few rows out of files, read by this process
passing.py   which values pass a condition of the query
columns.py   columns of files, kept in memory
direct.py    the same as relations that the driver holds
feed.py      the change feed of a few commits, read by the driver
small_write.py  a small change written by the driver
locks.py     one writer at a time on a local disk, across processes
warehouse.py create, register and drop tables by name
embedded.py  the local Spark session of a home folder
"""

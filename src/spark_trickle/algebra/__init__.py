"""What a query means, as data. Pure: no Spark, no database.

relations.py   the nine kinds of relation and the change nodes built from them
comparisons.py simple conditions on a source, as data
traverse.py    children, rebuilding, what lies below
repeatable.py  which columns may differ between two evaluations of the same version
restrict.py    push a key set down towards the scans
render.py      a plan as text: EXPLAIN and golden files
"""

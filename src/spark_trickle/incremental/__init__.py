"""The calculus: the change of a query, from the changes of its sources. Pure.

differentiate.py  one exhaustive match over the nine kinds
rules/            one equation a file
prune.py          drop what did not change
inner.py          groups inside a query that can be kept, and the query above them
maintain.py       how the stored table is brought up to date: by weight, by key, top rows, iterate, or recompute
"""

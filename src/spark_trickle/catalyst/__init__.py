"""Spark's planner as our front and back end.

java.py       Java's names, each looked up once
plan.py       the only wrapper of JVM plans: read, rebuild, combine
expressions.py  the same for expressions: references, equalities, determinism
analyze.py    text or DataFrame → analyzed plan, Spark's errors translated
volatile.py   functions whose value is not decided by the sources
normalize.py  Spark's own rules, in order, until no subquery is left
classify.py   plan → relation: one row per operator
growth.py     of which inputs an operator only ever wants more
build.py      relation → plan over any version, change or restriction of the inputs
definition.py the whole way from a query to what a refresh needs of it
"""

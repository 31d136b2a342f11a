"""Spark's planner as our front and back end.

java.py       Java's names, each looked up once
compiled.py   the classes of this package that are written in Java
later.py      calls into the JVM that are put off and carried out together, by calls.java
few_rows.py   settings of the session that evaluates rows at hand
plan.py       the only wrapper of JVM plans: read, rebuild, combine
expressions.py  the same for expressions: references, equalities, determinism
sessions.py   one Spark session per definition, with the settings its text was written under
spark_errors.py  what Spark's errors mean to us

From a query to what a refresh needs of it:
analyze.py    text or DataFrame → analyzed plan, Spark's errors translated
views.py      which views it was read through
hidden.py     `*` over a stream table means the columns of its query
volatile.py   functions whose value is not decided by the sources
time.py       functions of time as a source, the clock
normalize.py  Spark's own rules, in order, until no subquery is left
rewrite.py    rewrites of our own
sources.py    the tables at the leaves
pushed.py     conditions that a source can be read by
classify.py   plan → relation: one row per operator
ordering.py   what a query sorts by, and whether that is total
recursion.py  recursive queries with a counter of their levels
growth.py     of which inputs an operator only ever wants more
totals.py     which totals an aggregate can be continued from
inner.py      groups inside a query, with their totals
definition.py the whole way

From a relation to rows:
build.py      relation → plan over any version, change or restriction of the inputs
identity.py   when two rows are the same row; netting
held.py       rows held by the driver, in the JVM
in_thread.py  a plan over such rows, run by the calling thread, by rows.java
few.py        rows in the driver's own memory: netted, compared, found again
leaves.py     sources as plans
listing.py    few keys as a condition that skips files
holder.py     what is evaluated once: on the driver, or kept by the executors
merge.py      totals of a change merged with the stored ones
guard.py      a limit on the time that jobs may take
"""

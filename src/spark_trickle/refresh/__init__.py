"""The spine: measure, decide, compute, write, remember.

runtime.py      what a refresh works with
definitions.py  a stream table's definition, understood once per process and rechecked cheaply
pins.py         the base versions a run of refreshes agrees on
vector.py       which version of every direct source a refresh reads
interval.py     measure: from the old frontier to the new one
results.py      what the verbs give back
choose.py       decide: a pure function of facts
ends.py         the two ends of an interval, and how sources are read there
compute.py      the rows to change
stored.py       the stored rows: found by keys, and compared with what they are now
kept_groups.py  groups inside a query, kept in memory and continued
inner_reader.py such groups as sources of the query above them
ready.py        what the next refresh begins with, brought to hand
described.py    the definition, told by the table itself
recover.py      what a killed process left behind
doctor.py       what is wrong, and a catalog rebuilt from the tables
retention.py    versions of sources that are needed and may soon be gone
skip.py         refreshes that somebody else does or has done
idle.py         stream tables with nothing to do, many at a time
run.py          one refresh, start to end
attempt.py      one refresh on its way, and the time of its steps
write.py        carry out the decision, or the next safer one
remember.py     what the catalog keeps of a refresh
graph.py        who reads what, as the catalog has it
units.py        stream tables refreshed together or not at all
restore.py      a stream table taken back to what it was
circular.py     whether stream tables may read each other in a circle
cycle.py        stream tables that read each other in a circle
fixpoint.py     queries evaluated until nothing is new
upstream.py     a stream table and everything it is made from, at one set of base versions
preview.py      the decision the next refresh would take
verify.py       the table against its query, now or at any past refresh
"""

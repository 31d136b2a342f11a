"""The spine: measure, decide, compute, write, remember.

runtime.py      what a refresh works with
definitions.py  a stream table's definition, understood once per process and rechecked cheaply
interval.py     measure: from the old frontier to the new one
results.py      what the verbs give back
choose.py       decide: a pure function of facts
compute.py      the rows to change
recover.py      what a killed process left behind
run.py          one refresh, start to end
attempt.py      one refresh on its way, and the time of its steps
write.py        carry out the decision, or the next safer one
remember.py     what the catalog keeps of a refresh
graph.py        who reads what, as the catalog has it
upstream.py     a stream table and everything it is made from, at one set of base versions
preview.py      the decision the next refresh would take
verify.py       the table against its query, now or at any past refresh
"""

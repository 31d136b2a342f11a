"""Everything that can be tested without a JVM.

payloads.py     operators as Python functions over bags
interpreter.py  what every node means: the reference the calculus is held against
plans.py        random plans
cases.py        random plans with random NULL-rich databases
law.py          the law: the change of a query is its new answer minus its old answer
test_law.py     the law holds
mutations.py    every rule broken on purpose; test_mutations.py: the law notices
examples.py     a few plans by hand, for the other tests
"""

"""When to refresh what.

schedules.py   what a schedule says, canonical periods, data timestamps
retry.py       what to do after a failure
due.py         what is due now, and in which order: a pure function of graph, catalog rows and clock
"""

"""The facade: `Trickle` and its verbs.

options.py   schedules, modes and statuses, checked where they enter
checks.py    what the state of a stream table allows
results.py   catalog rows as data frames
explain.py   what would happen, and why, as text
create.py    from a query to a registered, filled table
cycles.py    whether stream tables may read each other in a circle
snapshots.py several stream tables as of one instant
trickle.py   the verbs
"""

from spark_trickle.api.trickle import Trickle
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.results import RefreshResult, VerifyResult

__all__ = ["Action", "RefreshResult", "Trickle", "VerifyResult"]

"""The facade: `Trickle` and its verbs.

options.py   schedules, modes and statuses, checked where they enter
results.py   catalog rows as data frames
explain.py   what would happen, and why, as text
create.py    from a query to a registered, filled table
trickle.py   the verbs
"""

from spark_trickle.api.trickle import Trickle
from spark_trickle.refresh.choose import Action
from spark_trickle.refresh.results import RefreshResult, VerifyResult

__all__ = ["Action", "RefreshResult", "Trickle", "VerifyResult"]

"""Stream tables for Apache Spark and Delta Lake: a SELECT kept up to date by applying only what changed."""

from spark_trickle.api import Action, RefreshResult, Trickle, VerifyResult
from spark_trickle.config import Settings
from spark_trickle.errors import TrickleError

__version__ = "0.1.0"

__all__ = ["Action", "RefreshResult", "Settings", "Trickle", "TrickleError", "VerifyResult", "__version__"]

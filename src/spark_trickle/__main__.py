"""`python -m spark_trickle` is the command `trickle`."""

import sys

from spark_trickle.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""How often a soak test tries: `make soak-fold COUNT=500` sets it for one of them."""

import os

VARIABLE = "LOGKEEP_COUNT"


def soak_count(usual: int) -> int:
    """The usual count, unless LOGKEEP_COUNT says another one."""
    return int(os.environ.get(VARIABLE) or usual)

"""Which tenth of an experiment is run today: another one each time, the same again for the same seed."""

import os
import random
import secrets

from tests.soak_counts import soak_count

VARIABLE = "LOGKEEP_TEST_SEED"


def seeded(what: str) -> random.Random:
    """A generator whose seed is printed; set LOGKEEP_TEST_SEED to have the same choice again."""
    seed = int(os.environ.get(VARIABLE) or secrets.randbelow(10**9))
    print(f"{what}: {VARIABLE}={seed}")
    return random.Random(f"{what}:{seed}")


def seeded_part(what: str, points: list[int], share: int) -> list[int]:
    """One in `share` of the points, in order."""
    chosen = sorted(seeded(what).sample(points, -(-len(points) // share)))
    print(f"{what}: {len(chosen)} of {len(points)} points: {chosen}")
    return chosen


def soak_part(what: str, points: list[int]) -> list[int]:
    """All points, or as many of them as LOGKEEP_COUNT says."""
    count = min(soak_count(len(points)), len(points))
    return points if count == len(points) else sorted(seeded(what).sample(points, count))

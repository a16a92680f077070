"""What a run with --follow ends with."""

import pytest

from logkeep.cli.verbs.zookeeper.follow import round_code
from logkeep.model.findings import Finding, Severity
from logkeep.repository.follow import FollowRound
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone


@pytest.mark.parametrize(("severity", "expected"), [(Severity.DAMAGE, 10), (Severity.WARNING, 0), (None, 0)])
def test_damage_that_a_merge_finds_counts(severity: Severity | None, expected: int) -> None:
    found = () if severity is None else (Finding(code="hash-mismatch", severity=severity, where="x", what="y"),)
    assert round_code(FollowRound[ZooKeeperBackupDone](1, merged=Optimized(2, 1, 100, found)), None) == expected


def test_a_round_without_anything_new_is_good() -> None:
    assert round_code(FollowRound[ZooKeeperBackupDone](1), None) == 0

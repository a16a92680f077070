"""What a list says of a backup after a verification: nothing that is damaged is called valid."""

import pytest

from logkeep.model.findings import Severity
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.verify.run import Level, VerifiedFiles
from logkeep.zookeeper.verify.verdict import judge


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (Class.BOOT_FAILED, Condition.DAMAGED),
        (Class.BOOT_DIFFERS, Condition.DAMAGED),
        (Class.TREES_DIFFER, Condition.PARTIAL),
    ],
)
def test_what_a_server_or_a_replay_found_wrong_is_no_valid_backup(kind: Class, condition: Condition) -> None:
    """Although every file is as it was written."""
    seen = FileFinding(kind=kind, severity=Severity.DAMAGE, where="b", what="wrong")
    judged = judge(VerifiedFiles(level=Level.BOOT, seen=(seen,), restorable=True, end=5), end=5, where="b")
    assert (judged.condition, judged.score < 100, judged.exit_code) == (condition, True, 10)

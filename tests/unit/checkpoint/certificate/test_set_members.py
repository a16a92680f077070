"""External positions against the cuts of the other members of a set (V13)."""

import pytest

from logkeep.checkpoint.certificate.rules import ArchivedCut, CutEvidence, certify
from logkeep.checkpoint.certificate.set_members import ExternalCut, SetMember
from logkeep.checkpoint.certificate.tables import CutTables, PartitionClaim, PartitionFacts
from logkeep.repository.backups.certificate import RuleOutcome

ZK = SetMember("zk", "zookeeper", cuts={"zk": ExternalCut((2 << 32) + 5, counter_bits=32)})
KAFKA = SetMember("kafka", "kafka", cuts={"kafka/orders/0": ExternalCut(99)})
LATE = SetMember("late", problem="late has no completed backup 7")


def v13(seen: dict[str, int]) -> RuleOutcome:
    claim = PartitionClaim(0, 0, 1, 0, -1, "", seen, ())
    tables = CutTables("00" * 16, "shop", 1, 7, "nonce", (claim,), {}, 1)
    found = CutEvidence(tables, [ArchivedCut(0, 1)], {}, [PartitionFacts(0, external=seen)], [ZK, KAFKA, LATE])
    (rule,) = (rule for rule in certify(found).rules if rule.rule == "V13")
    return rule


@pytest.mark.parametrize(
    ("seen", "outcome", "what"),
    [
        ({"zk": (2 << 32) + 3, "kafka/orders/0": 99}, "held", "2 external positions, 2 unordered"),
        ({"zk": (1 << 32) + 3}, "held", "1 external position, 0 unordered; not counted where a later epoch began: zk"),
        ({"zk": (2 << 32) + 6}, "broken", "1 violation"),
        ({"kafka/orders/1": 0}, "unchecked", "kafka/orders/1 is not in the cut of kafka"),
        ({"late": 1}, "unchecked", "late has no completed backup 7"),
        ({"search": 1}, "unchecked", "search is not part of this backup"),
    ],
)
def test_v13_what_the_application_has_seen_is_in_the_cut_of_its_system(
    seen: dict[str, int], outcome: str, what: str
) -> None:
    rule = v13(seen)
    assert (rule.outcome, rule.what) == (outcome, what)

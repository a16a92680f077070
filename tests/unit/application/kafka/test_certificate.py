"""The certificate of participants: what each rule finds, and that a true cut breaks none."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from logkeep.application.kafka.certificate import ParticipantEvidence, certify, tables_of
from logkeep.application.kafka.cut_document import ApplicationLog, CutReader, ParticipantCut
from logkeep.application.kafka.cut_task import ParticipantCheck
from logkeep.application.kafka.headers import Stamps
from logkeep.checkpoint.records import MessageSource
from logkeep.formats.kafka.batches import walk
from logkeep.formats.plain_batches import BatchRecord, encode_batch
from logkeep.repository.backups.certificate import Certificate

SHOP, N = Stamps.of("shop"), 10
ARCHIVED = {("orders", 0): (0, 90), ("orders", 1): (0, 40), ("receipts", 0): (0, 30)}
GROUPS = {("g", "orders", 0): 50, ("g", "orders", 1): 30}
Record = tuple[tuple[str, bytes], ...]
"""Its headers."""


def made(source: tuple[str, int, int], checkpoint_id: int, by: Stamps = SHOP) -> Record:
    headers = by.stamped([], checkpoint_id, MessageSource(*source, 0))
    return tuple((name, bytes(value)) for name, value in headers if isinstance(value, bytes))


INSIDE, OUTSIDE = made(("orders", 0, 49), N - 1), made(("orders", 0, 50), N)
TRUE: dict[int, Record] = {
    3: (),
    10: INSIDE,
    21: INSIDE,
    22: OUTSIDE,
    23: (),
    24: made(("x", 0, 1), 99, Stamps.of("other")),
}
"""Of `receipts`, whose part that is kept ends at 20, and E is 28."""


def cut(*in_transit: int, transactional: bool = True) -> ParticipantCut:
    return ParticipantCut(
        repository="r" * 16, source="shop", id=N, application="shop", stamp=SHOP.application.hex(), history=1,
        transactional=transactional, forced=0, disagreeing=0,
        logs=(
            ApplicationLog("orders", 0, 40, 80, (CutReader("g", 50),)),
            ApplicationLog("orders", 1, 30, 40, (CutReader("g", 30),)),
            ApplicationLog("receipts", 0, 20, 28, (), in_transit),
        ),
    )  # fmt: skip


def certificate(
    receipts: Mapping[int, Record] = TRUE,
    claimed: ParticipantCut | None = None,
    groups: Mapping[tuple[str, str, int], int] = GROUPS,
) -> Certificate:
    claimed = claimed or cut(21)
    tables = tables_of(claimed, ARCHIVED)
    checks = [ParticipantCheck(tables, number) for number in range(3)]
    for offset, headers in receipts.items():
        data = encode_batch(offset, 0, [BatchRecord(b"key", b"value", headers, 1000)])
        checks[2].take(data, walk(data).batches, None)
    return certify(ParticipantEvidence(claimed, [check.facts for check in checks], ARCHIVED, groups))


def broken(found: Certificate) -> set[str]:
    return {rule.rule for rule in found.broken}


def test_a_true_cut_breaks_no_rule_and_others_on_its_topics_are_declared() -> None:
    found = certificate()
    assert (broken(found), found.exact, found.records, found.in_transit) == (set(), True, 6, 1)
    assert {rule.rule for rule in found.unchecked} == {"V9", "V10", "V11", "V13"}
    assert found.verdict.startswith("the cut is consistent: 9 rules held")
    assert found.declared[1].startswith("1 record with the stamp of another application")
    assert found.declared[2].startswith("2 records without a stamp")


def test_records_made_of_an_earlier_log_of_the_same_name_break_no_rule() -> None:
    """`orders` was deleted and made anew: it ends at 80 now, and 5,000 was in the log before."""
    found = certificate(TRUE | {4: made(("orders", 0, 5000), 3), 5: made(("orders", 0, 80), N - 1)})
    assert (broken(found), found.in_transit) == (set(), 1)
    assert found.declared[-1].startswith("2 records made of a log that no longer exists")
    assert broken(certificate(TRUE | {5: made(("orders", 0, 79), N - 1)})) == {"V3", "V4"}
    assert "V2" in broken(certificate(TRUE | {5: made(("orders", 0, 5000), N)}))


def moved(**changes: object) -> ParticipantCut:
    """The cut with another P, B or E of the first log."""
    first, *rest = cut(21).logs
    return msgspec.structs.replace(cut(21), logs=(msgspec.structs.replace(first, **changes), *rest))


FORGED: dict[str, tuple[str, dict[str, Any]]] = {
    "a stamp of the cut is kept": ("V2", {"receipts": TRUE | {5: made(("orders", 0, 49), N)}}),
    "a stamp is older than its cause": ("V3", {"receipts": TRUE | {22: made(("orders", 0, 50), N - 1)}}),
    "a record that is kept has its cause behind the cut": ("V4", {"receipts": TRUE | {10: OUTSIDE}}),
    "a record in transit is not listed": ("V5", {"claimed": cut()}),
    "a record in transit is gone": ("V5", {"receipts": {n: r for n, r in TRUE.items() if n != 21}}),
    "a record from after the cut is listed": ("V5", {"claimed": cut(21, 22)}),
    "P is too early": ("V4", {"claimed": moved(readers=(CutReader("g", 49),))}),
    "P is too late": ("V3", {"claimed": moved(readers=(CutReader("g", 51),))}),
    "a partition has no checkpoint": ("V1", {"claimed": moved(readers=())}),
    "a group is elsewhere": ("V7", {"groups": GROUPS | {("g", "orders", 1): 31}}),
    "E lies behind the archive": ("V12", {"claimed": moved(end=91)}),
    "E lies in front of P": ("V12", {"claimed": moved(end=45)}),
    "a listed record lies below the cut": ("V12", {"claimed": cut(10, 21)}),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_breaks_its_rule(name: str) -> None:
    rule, changed = FORGED[name]
    assert rule in broken(certificate(**changed))


def test_without_transactions_orphans_are_duplicates_that_are_counted_and_the_cut_is_not_exact() -> None:
    orphans = TRUE | {n: made(("orders", 0, 60 + n), N - 1) for n in (11, 12, 13)}
    found = certificate(orphans, cut(21, transactional=False))
    assert (broken(found), found.exact, found.duplicates) == (set(), False, 3)
    assert "not exact, 3 possible duplicates" in found.verdict
    assert broken(certificate(orphans)) == {"V3", "V4"}
    assert certificate(TRUE, cut(21, transactional=False)).verdict.startswith(
        "nothing is lost, but the cut is not exact"
    )


def test_an_unreadable_log_leaves_other_rules_unchecked() -> None:
    claimed = cut(21)
    facts = [ParticipantCheck(tables_of(claimed, ARCHIVED), number).facts for number in range(3)]
    facts[1].damaged = ("a/object", "the bytes are not those that were written")
    found = certify(ParticipantEvidence(claimed, facts, ARCHIVED, GROUPS))
    assert (broken(found), len(found.unchecked)) == ({"V8"}, 12)


def test_a_log_that_is_not_archived_is_named() -> None:
    claimed = cut()
    facts = [ParticipantCheck(tables_of(claimed, ARCHIVED), number).facts for number in range(2)]
    found = certify(ParticipantEvidence(claimed, facts, ARCHIVED, GROUPS))
    assert broken(found) == {"V8"}

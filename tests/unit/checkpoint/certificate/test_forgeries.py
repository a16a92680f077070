"""Every forgery of a true cut is found by the rule that should find it."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.certificate import forgeries as f
from tests.support.certificate.cuts import certificate_of, true_cut
from tests.support.certificate.forgeries import Forgery

COUNT = int(os.environ.get("LOGKEEP_COUNT", "600"))


def check(forgery: Forgery, folder: Path, rule: str, most: int = 3) -> None:
    """The first cuts that allow this forgery, each found by the rule, which names what breaks it."""
    made = 0
    for seed in range(200):
        forged = forgery(true_cut(seed, 60), random.Random(seed))
        if forged is None:
            continue
        assert forged[0] == rule
        outcome = next(each for each in certificate_of(forged[1], folder).rules if each.rule == rule)
        assert outcome.outcome == "broken", f"seed {seed}: {forgery.__name__} was not found"
        assert outcome.records
        made += 1
        if made == most:
            return
    raise AssertionError("no cut allows this forgery")


def test_v1_a_cut_that_is_moved(tmp_path: Path) -> None:
    for forgery in (f.cut_one_earlier, f.cut_one_later, f.create_of_another_request, f.checkpoint_elsewhere):
        check(forgery, tmp_path, "V1")


def test_v2_a_stamp_of_the_cut_inside(tmp_path: Path) -> None:
    check(f.stamp_of_the_cut, tmp_path, "V2")


def test_v3_a_stamp_older_than_its_sender(tmp_path: Path) -> None:
    check(f.stamp_of_the_past, tmp_path, "V3")


def test_v4_a_message_from_behind_the_cut(tmp_path: Path) -> None:
    check(f.orphan, tmp_path, "V4")


def test_v5_a_pending_message_that_is_ignored(tmp_path: Path) -> None:
    check(f.pending_below_the_mark, tmp_path, "V5")


def test_v6_a_batch_that_the_cut_splits(tmp_path: Path) -> None:
    check(f.batch_over_the_cut, tmp_path, "V6")


def test_v7_an_event_of_another_command(tmp_path: Path) -> None:
    check(f.event_of_another_command, tmp_path, "V7")


def test_v8_another_history_and_missing_records(tmp_path: Path) -> None:
    check(f.history_of_others, tmp_path, "V8")
    check(f.record_missing, tmp_path, "V8")


def test_v9_a_snapshot_of_another_position(tmp_path: Path) -> None:
    check(f.snapshot_of_another_position, tmp_path, "V9")


def test_v10_a_state_that_no_event_gave(tmp_path: Path) -> None:
    check(f.state_changed, tmp_path, "V10")
    check(f.write_changed, tmp_path, "V10")


def test_v11_messages_lost_and_doubled(tmp_path: Path) -> None:
    for forgery in (f.outbox_entry_lost, f.acknowledged_in_transit, f.message_doubled, f.message_of_no_event):
        check(forgery, tmp_path, "V11")


def test_v12_a_manifest_with_other_positions(tmp_path: Path) -> None:
    check(f.manifest_elsewhere, tmp_path, "V12")


def test_v13_external_positions_behind(tmp_path: Path) -> None:
    check(f.external_behind, tmp_path, "V13")


def test_v13_an_unknown_member_is_not_checkable(tmp_path: Path) -> None:
    from dataclasses import replace  # noqa: PLC0415

    cut = next(c for c in map(true_cut, range(50)) if any(p.claim.external for p in c.partitions))
    found = certificate_of(replace(cut, members={}), tmp_path)
    assert [(r.rule, r.what) for r in found.unchecked] == [("V13", "zk is not part of this backup")]
    assert found.verdict == "the cut is consistent: 12 rules held; not checkable: V13"


@pytest.mark.soak
def test_many_forgeries(tmp_path: Path) -> None:
    made: Counter[str] = Counter()
    seed = 0
    while made.total() < COUNT:
        for forgery, rule, forged in f.forgeries(true_cut(seed), random.Random(seed)):
            made[forgery.__name__] += 1
            broken = [each.rule for each in certificate_of(forged, tmp_path).broken]
            assert rule in broken, (seed, forgery.__name__, broken)
        seed += 1
    print(f"{made.total()} forgeries, all found: {dict(made)}")

"""True cuts of random runs break no rule; naive cuts of the same runs do."""

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.certificate.cuts import Cut, certificate_of, true_cut

COUNT = int(os.environ.get("LOGKEEP_COUNT", "600"))


def check_cuts(seeds: range, folder: Path) -> int:
    """No false alarm; returns how many cuts had messages in transit."""
    busy = 0
    for seed in seeds:
        found = certificate_of(true_cut(seed), folder)
        assert not found.broken, (seed, found.broken)
        assert not found.unchecked, (seed, found.unchecked)
        busy += found.in_transit > 0
    return busy


def test_true_cuts_break_no_rule(tmp_path: Path) -> None:
    assert check_cuts(range(40), tmp_path) > 20


@pytest.mark.soak
def test_many_true_cuts_break_no_rule(tmp_path: Path) -> None:
    print(f"{COUNT} true cuts, {check_cuts(range(COUNT), tmp_path)} with messages in transit, 0 false alarms")


def naive(cut: Cut) -> Cut:
    """The ends of all logs, as a copy at one moment of each would have them, at different times."""
    for number, part in enumerate(cut.partitions):
        end = len(cut.beyond[number]) if number else part.claim.cut_end
        log = cut.beyond[number][part.claim.log_start : end]
        cut = cut.with_log(number, log).claimed(number, cut_end=end, position=end - 1)
        cut = cut.changed(number, archived=replace(part.archived, end=end))
    return replace(cut, checkpoint=cut.checkpoint + 100)


def test_v4_a_naive_cut_has_orphans(tmp_path: Path) -> None:
    found = [certificate_of(naive(true_cut(seed)), tmp_path) for seed in range(30)]
    orphans = sum(rule.count for one in found for rule in one.broken if rule.rule == "V4")
    assert orphans > 10, "the runs have messages from behind the first partition's cut"


def test_a_certificate_survives_its_encoding(tmp_path: Path) -> None:
    found = certificate_of(true_cut(3), tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
    assert found.verdict == "the cut is consistent: 13 rules held"

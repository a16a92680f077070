"""A way around damage leads to the same moment, or there is none: never quietly to an earlier one."""

from dataclasses import replace

import pytest

from logkeep.errors import RestoreFailed
from logkeep.zookeeper.timeline.plan import Target, ToEnd, ToTime, ToZxid
from logkeep.zookeeper.timeline.verified_path import choose
from tests.support.zookeeper.handmade_history import MemoryView, Past, backup_of

PAST = Past(range(1, 31))


def _damaged(view: MemoryView, last: bool) -> MemoryView:
    """The newest log, or the newest snapshot, is not what was kept."""
    kept = view.logs[-1] if last else view.snapshots[-1]
    content = bytearray(view.objects[kept])
    content[len(content) // 2] ^= 1
    return replace(view, objects=view.objects | {kept: bytes(content)})


def _view() -> MemoryView:
    return backup_of(PAST, snapshot_at=(0, 15), logs=(range(1, 11), range(11, 21), range(21, 31)))


@pytest.mark.parametrize("target", [ToEnd(), ToTime(PAST.time_of(30))], ids=["end", "time"])
def test_the_end_is_not_given_up_in_silence(target: Target) -> None:
    assert choose(_view(), target).path.until == 30
    with pytest.raises(RestoreFailed, match="only 0x14 can be proven") as failed:
        choose(_damaged(_view(), last=True), target)
    assert "--to-zxid 0x14" in failed.value.remedy
    assert choose(_damaged(_view(), last=True), ToZxid(20)).path.until == 20


def test_another_snapshot_leads_to_the_same_end() -> None:
    chosen = choose(_damaged(_view(), last=False), ToEnd())
    assert (chosen.path.until, len(chosen.passed_over) > 0) == (30, True)

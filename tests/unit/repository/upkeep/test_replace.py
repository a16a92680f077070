"""Merged segments serve old manifests, whoever reads, deletes, collects or backs up around them."""

from datetime import timedelta

import pytest

from logkeep.model.ids import BackupId
from logkeep.repository.backups.holds import reader_holds, reading
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.prune import delete
from tests.support.scripted.backup import expected, restored
from tests.support.scripted.merge import Pair, merge_neighbours
from tests.unit.repository.chain.test_walk import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


def merge(lab: Lab) -> Pair:
    with writing(lab.place, "merge", lab.clock, lab.token) as session:
        pair = merge_neighbours(session, 0)
    assert pair is not None
    return pair


def sweep_all(lab: Lab) -> None:
    """Three collections, days apart; readers renew their holds meanwhile."""
    for _ in range(3):
        lab.now += timedelta(days=2)
        for hold in reader_holds(lab.place):
            lab.store.replace(hold.name, lab.store.get(hold.name, 1 << 20), lab.store.head(hold.name).version)
        with writing(lab.place, "gc", lab.clock, lab.token) as session:
            collect(session, GarbageRules())


def remove(lab: Lab, *ids: int) -> None:
    with writing(lab.place, "delete", lab.clock, lab.token) as session:
        delete(session, ids, "test")


def stored(lab: Lab, pair: Pair) -> list[str]:
    return [n for n in lab.names() if any(token in n for token in pair.objects)]


def test_old_manifests_are_served_by_the_merged_object_and_the_old_ones_go(lab: Lab) -> None:
    ids = {lab.back_up({0: 4}): {0: 4}, lab.back_up({0: 8}): {0: 8}}
    pair = merge(lab)
    assert len(stored(lab, pair)) == 2
    sweep_all(lab)
    assert stored(lab, pair) == []
    for backup_id, ends in ids.items():
        assert restored(lab.place, backup_id) == expected(ends)


def test_a_chain_of_merges_is_followed_in_one_step(lab: Lab) -> None:
    ids = {lab.back_up({0: end}): {0: end} for end in (4, 8, 12, 16)}
    for _ in range(3):
        merge(lab)
    sweep_all(lab)
    assert len([n for n in lab.names() if "/topics/" in n]) == 1
    for backup_id, ends in ids.items():
        assert restored(lab.place, backup_id) == expected(ends)


def test_a_reader_that_began_before_a_merge_keeps_the_old_objects(lab: Lab) -> None:
    first = lab.back_up({0: 4})
    lab.back_up({0: 8})
    before = read_chain(lab.place)
    with reading(lab.place, BackupId(first), this_process("r"), "restore", lab.token):
        merge(lab)
        sweep_all(lab)
        assert restored(lab.place, first, before) == expected({0: 4})


def test_a_reader_that_comes_after_a_merge_does_not_stop_garbage_collection(lab: Lab) -> None:
    first = lab.back_up({0: 4})
    lab.back_up({0: 8})
    merge(lab)
    sweep_all(lab)
    with reading(lab.place, BackupId(first), this_process("r"), "restore", lab.token):
        sweep_all(lab)
        assert restored(lab.place, first) == expected({0: 4})


def test_a_reader_keeps_a_merged_object_after_its_backup_was_deleted_and_the_merge_forgotten(lab: Lab) -> None:
    """No completed backup is older than the replacement any more, so the chain forgets it."""
    first = lab.back_up({0: 4})
    last = lab.back_up({0: 8})
    merge(lab)
    began = read_chain(lab.place)
    with reading(lab.place, BackupId(last), this_process("r"), "restore", lab.token):
        lab.back_up({1: 4})
        remove(lab, first, last)
        assert read_chain(lab.place).replacements == ()
        sweep_all(lab)
        assert restored(lab.place, last, began) == expected({0: 8})


def test_a_backup_after_a_deletion_does_not_trust_what_a_merged_segment_holds_behind_the_cut(lab: Lab) -> None:
    first = lab.back_up({0: 4})
    second = lab.back_up({0: 8})
    merge(lab)
    remove(lab, second)
    third = lab.back_up({0: 6})
    assert restored(lab.place, first) == expected({0: 4})
    assert restored(lab.place, third) == expected({0: 6})
    sweep_all(lab)
    assert restored(lab.place, third) == expected({0: 6})

"""Damage to what is stored of restores: always seen, never read as whole, and never in the way of backups."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.model.ids import BackupId, RestoreId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository, open_repository
from logkeep.repository.backups.source import view
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import unseal
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.restores import (
    begin_restore,
    list_restores,
    newest_receipt,
    put_aborted,
    put_map,
    put_producers,
    put_receipt,
    read_aborted,
    read_map,
    read_plan,
    read_producers,
    read_receipts,
)
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import repair
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.crash.points import AT_ONCE, run_backup
from tests.golden.test_restores_golden import DOCUMENTS, FILES
from tests.support.scripted.backup import expected, restored
from tests.support.scripted.restores import NEW, PRODUCERS, REPOSITORY, TOPICS, map_bytes, receipt

READERS: dict[str, Callable[[SourceRef, RestoreId], object]] = {
    "plan.json": read_plan,
    "producers.000001.json": read_producers,
    "receipt.000001.json": read_receipts,
    "aborted.json": read_aborted,
}


def filled(place: SourceRef) -> RestoreId:
    """A restore with everything that one can have."""
    restore_id = begin_restore(place, NEW, utc_now, random_token)
    put_producers(place, restore_id, TOPICS, PRODUCERS, "run", after=0)
    ref = put_map(place, restore_id, map_bytes(restore_id), random_token())
    put_receipt(place, receipt(place, restore_id, map_ref=ref))
    put_aborted(place, read_plan(place, restore_id), "why", utc_now, random_token)
    return restore_id


@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_no_changed_byte_and_no_cut_goes_unnoticed(name: str, data: st.DataObject) -> None:
    whole, kind = (FILES / f"{name}.v1.json").read_bytes(), type(DOCUMENTS[name])
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for broken in (bytes(flipped), whole[:at]):
        with pytest.raises(Damaged):
            unseal(broken, kind, name)


@pytest.mark.parametrize("leaf", READERS)
def test_documents_of_others_do_not_fit(leaf: str) -> None:
    store = MemoryStore()
    place = SourceRef(store, REPOSITORY, "shop")
    mine, other = filled(place), filled(place)
    root = layout.restore("shop", mine)
    READERS[leaf](place, mine)
    for foreign in (
        store.get(layout.restore("shop", other) + leaf, 1 << 20),
        _elsewhere(SourceRef(MemoryStore(), "f" * 32, "shop"), mine, leaf),
        _elsewhere(SourceRef(MemoryStore(), REPOSITORY, "other"), mine, leaf),
        store.get(root + ("plan.json" if leaf != "plan.json" else "receipt.000001.json"), 1 << 20),
    ):
        store.delete(root + leaf)
        store.put_new(root + leaf, foreign)
        with pytest.raises(Damaged):
            READERS[leaf](place, mine)


def _elsewhere(place: SourceRef, restore_id: RestoreId, leaf: str) -> bytes:
    """The same document as another repository, or another source, has it: under the very same restore id."""
    there = filled(place)
    if there != restore_id:  # the clock has moved on; what matters is whose it is
        assert there > restore_id
    return place.store.get(layout.restore(place.source, there) + leaf, 1 << 20)


def test_receipts_and_producers_that_changed_places_are_seen() -> None:
    place = SourceRef(MemoryStore(), REPOSITORY, "shop")
    restore_id = filled(place)
    put_receipt(place, receipt(place, restore_id))
    put_producers(place, restore_id, TOPICS, PRODUCERS[:1], "later", after=1)
    for name_of, reader in ((layout.restore_receipt, read_receipts), (layout.restore_producers, read_producers)):
        a, b = (name_of("shop", restore_id, number) for number in (1, 2))
        first, second = (place.store.get(name, 1 << 20) for name in (a, b))
        for name, data in ((a, second), (b, first)):
            place.store.delete(name)
            place.store.put_new(name, data)
        with pytest.raises(Damaged, match="another number"):
            reader(place, restore_id)


def test_a_changed_map_is_seen() -> None:
    place = SourceRef(MemoryStore(), REPOSITORY, "shop")
    restore_id = filled(place)
    found = newest_receipt(place, restore_id)
    assert found is not None
    assert found.map is not None
    name = layout.restore_map("shop", restore_id, found.map.token)
    whole = read_map(place, restore_id, found.map)
    for broken in (whole[:-1], whole + b"x", bytes([whole[0] ^ 1]) + whole[1:]):
        place.store.delete(name)
        place.store.put_new(name, broken)
        with pytest.raises(Damaged):
            read_map(place, restore_id, found.map)


def _spoil_everything(root: Path) -> None:
    for path in sorted((root / "sources/prod/restores").rglob("*.*")):
        path.write_bytes(path.read_bytes()[:-3] + b"...")
    (root / "sources/prod/restores/stray.txt").write_text("dear")


@pytest.mark.parametrize("spoiled", [False, True])
def test_restores_are_in_nobodys_way(tmp_path: Path, spoiled: bool) -> None:
    """Verify, repair, delete and collection go on beside restores, whole or damaged, and leave each byte alone."""
    store = LocalStore(tmp_path)
    store.create()
    created = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
    place = SourceRef(store, created.document.repository, "prod")
    ends = [{0: 6, 1: 3}, {0: 9, 1: 8}]
    ids = [run_backup(place, e) for e in ends]
    restore_id = filled(place)
    if spoiled:
        _spoil_everything(tmp_path)
    before = {p: p.read_bytes() for p in (tmp_path / "sources/prod/restores").rglob("*.*")}
    assert len(before) >= 6
    verifier = Verifier(place, InlineEngine(), this_process("v"), utc_now, random_token)
    verified = verifier.verify(BackupId(ids[1]), "data")
    assert verified.document.verdict == GOOD
    assert not verified.findings
    repair(place, utc_now, random_token, timedelta(minutes=5), accept_loss=True, dry_run=False)
    with writing(place, "prune", utc_now, random_token) as session:
        delete(session, [ids[0]], "policy")
        collect(session, AT_ONCE)
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    assert {p: p.read_bytes() for p in (tmp_path / "sources/prod/restores").rglob("*.*")} == before
    assert open_repository(store).sources() == ["prod"]
    assert [s.id for s in view(place, utc_now(), this_process("r")).states()] == [ids[1]]
    assert restored(place, ids[1]) == expected(ends[1])
    (row,) = list_restores(place)
    assert (row.id, row.state, bool(row.trouble)) == (restore_id, "aborted", spoiled)

"""Buried offsets in a repository: never a backup without its burial, whatever call its process dies at; and damage."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, FormatTooNew
from logkeep.model.ids import BackupId
from logkeep.repository.access import create_repository
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.burials import burials_by_log, put_burial, read_burial
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.backups.verdicts import DAMAGED
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BuriedLog, BuryAction
from logkeep.repository.chain.commits import SourceRef, read_chain, read_whole_chain
from logkeep.repository.chain.format import BURIED_OFFSETS, StoreFacts, check_features, open_format, require_feature
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.verify.run import Verifier
from logkeep.store.memory import MemoryStore
from tests.property.repository_machine import Crash, DiesAt
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up, log_of

NOW = datetime(2026, 11, 15, tzinfo=UTC)
RUNS = b"LKBURY1\n" + (1).to_bytes(8, "little") + (3).to_bytes(8, "little")


class Repository:
    """One source with one backup, a clock that moves on, and tokens in order."""

    def __init__(self) -> None:
        self.now, numbers = NOW, count(1)
        self.token: Callable[[], str] = lambda: f"{next(numbers):016x}"
        self.store = MemoryStore(lambda: self.now)
        made = create_repository(self.store, StoreFacts(True, True, False), NOW, self.token)
        self.place = made.place("prod")
        self.first = back_up(self.place, {0: 9, 1: 5}, InlineEngine(), self.clock, self.token).id
        self.now += timedelta(hours=1)

    def clock(self) -> datetime:
        return self.now

    def bury(self, place: SourceRef | None = None) -> None:
        """As a backup of a cluster does: the feature, the object, the burial, the backup."""
        with writing(place or self.place, "backup", self.clock, self.token) as session:
            ongoing = begin(session, ensure_source(session.place, "scripted", {"id": "s-1"}, self.now))
            require_feature(session.place.store, BURIED_OFFSETS)
            ref = put_burial(session.place, RUNS, self.token())
            session.commit(BuryAction(ongoing.id, (BuriedLog(log_of(0), ref, 2),), "scripted"))
            ongoing.complete(FinishedRun(cut=[LogCut(log_of(0), 0, 9), LogCut(log_of(1), 0, 5)], new=[]))


def test_no_backup_is_visible_without_its_burial_whatever_call_its_process_dies_at() -> None:
    visible = 0
    for call in range(1, 80):
        made = Repository()
        with suppress(Crash):
            made.bury(SourceRef(FaultyStore(made.store, DiesAt(call)), made.place.repository, "prod"))
        folded = read_chain(made.place)
        assert folded == read_whole_chain(made.place)
        assert folded.burials(made.first) == (), "the backup before is as it was"
        for entry in folded.completed[1:]:
            visible += 1
            ((burial,),) = burials_by_log(folded, entry.id, [log_of(0), log_of(1)]).values()
            assert read_burial(made.place, burial.object) == RUNS
        if folded.buried:
            features = open_format(made.store).document.required_features
            assert BURIED_OFFSETS in features
    assert 0 < visible < 79


@pytest.mark.parametrize("data", [None, b"LKBURY1\n", RUNS[:-1] + b"\1"])
def test_a_damaged_burial_is_damage_of_every_backup_that_it_applies_to(data: bytes | None) -> None:
    made = Repository()
    made.bury()
    folded = read_chain(made.place)
    ref = folded.burials(folded.last_id)[0].object
    name = layout.buried("prod", ref.token)
    made.store.delete(name)
    if data is not None:
        made.store.put_new(name, data)
    with pytest.raises(Damaged):
        read_burial(made.place, ref)
    verifier = Verifier(made.place, InlineEngine(), this_process("verify"), made.clock, made.token)
    found = verifier.verify(BackupId(folded.last_id), "files")
    assert [f.code for f in found.findings] == ["buried-offsets-damaged"]
    assert verifier.verify(BackupId(made.first), "files").findings == ()


def test_other_backups_that_need_a_damaged_burial_are_marked_too() -> None:
    made = Repository()
    made.bury()
    burying = read_chain(made.place).last_id
    made.now += timedelta(hours=1)
    later = back_up(made.place, {0: 10, 1: 5}, InlineEngine(), made.clock, made.token)
    made.store.delete(layout.buried("prod", read_chain(made.place).burials(burying)[0].object.token))
    verifier = Verifier(made.place, InlineEngine(), this_process("verify"), made.clock, made.token)
    assert verifier.verify(BackupId(burying), "files").also_damaged == (later.id,)
    assert verifier.verify(BackupId(later.id), "files").also_damaged == (burying,)


def test_the_next_backup_inherits_the_damage_of_a_burial() -> None:
    made = Repository()
    made.bury()
    folded = read_chain(made.place)
    made.store.delete(layout.buried("prod", folded.burials(folded.last_id)[0].object.token))
    verifier = Verifier(made.place, InlineEngine(), this_process("verify"), made.clock, made.token)
    verifier.verify(BackupId(folded.last_id), "files")
    made.now += timedelta(hours=1)
    newest = back_up(made.place, {0: 10, 1: 5}, InlineEngine(), made.clock, made.token)
    found = {parsed.backup: parsed.verdict for parsed, _ in stored_verifications(made.place)}
    assert found == {folded.last_id: DAMAGED, newest.id: DAMAGED}


def test_an_earlier_release_refuses_the_repository() -> None:
    made = Repository()
    made.bury()
    with pytest.raises(FormatTooNew, match="buried-offsets"):
        check_features(open_format(made.store).document, known=frozenset({"packed-records", "zstd-frames"}))

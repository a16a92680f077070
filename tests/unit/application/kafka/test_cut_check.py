"""The level `cut` of a backup of participants: as deep as `records`, honest about gaps, and no damage without one."""

import itertools
from dataclasses import dataclass, field

import pytest

from logkeep.application.kafka.certificate import ParticipantCutCheck
from logkeep.engine.inline import InlineEngine
from logkeep.errors import StoreDenied
from logkeep.kafka.verify.records import check_records
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.certificate import Certificate
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.verify.run import Deeper, Verifier, VerifyResult
from logkeep.store.memory import MemoryStore
from tests.support.certificate.participants import back_up_cut
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.slow_records import Slow, batch_of


@dataclass
class _Application:
    """A topic with its application, and the check of its last backup."""

    source: CompactedSource
    end: int = 4
    transactional: bool = True
    check: ParticipantCutCheck = field(default_factory=ParticipantCutCheck)

    def back_up(self) -> int:
        return back_up_cut(self.source, self.end, transactional=self.transactional)

    def verify(self, place: SourceRef | None = None) -> VerifyResult:
        return self._verified("cut", self.check, place or self.source.place)

    def records(self) -> VerifyResult:
        return self._verified("records", check_records, self.source.place)

    def _verified(self, level: str, deeper: Deeper, place: SourceRef) -> VerifyResult:
        verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=deeper)
        return verifier.verify(BackupId(read_chain(place).completed[-1].id), level)

    @property
    def certificate(self) -> Certificate:
        assert self.check.certificate is not None
        return self.check.certificate


@pytest.fixture
def application() -> _Application:
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    place = create_repository(MemoryStore(), facts, utc_now(), random_token).place("prod")
    made = _Application(CompactedSource(place))
    made.source.transaction([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], 7, True)
    return made


def test_a_whole_backup_is_good_and_its_digests_are_those_of_the_level_records(application: _Application) -> None:
    application.back_up()
    found = application.verify()
    assert (found.document.verdict, found.document.level) == (GOOD, "cut")
    assert application.certificate.verdict.startswith("the cut is consistent")
    assert found.document.digests == application.records().document.digests
    assert len(found.document.digests) == 1


def test_damage_behind_the_end_of_the_cut_is_found_as_at_the_level_records(application: _Application) -> None:
    """The cut is the deepest level: what it calls good, it must have read."""
    source = application.source
    source.logs[0].append(batch_of(4, [Slow(0)], b"rubbish", count=1))
    source.ends[0] = 5
    application.back_up()
    codes = {each.code for each in application.records().findings}
    assert codes == {"record-malformed"}
    found = application.verify()
    assert found.document.verdict == DAMAGED
    assert codes <= {each.code for each in found.findings}


def test_a_log_with_a_gap_is_not_called_complete(application: _Application) -> None:
    source = application.source
    source.back_up()
    source.lose(5)
    source.write([(b"d", b"4")])
    application.end, application.transactional = 10, False
    application.back_up()
    assert application.verify().document.verdict == GOOD
    complete = next(rule for rule in application.certificate.rules if rule.rule == "V8")
    assert (complete.outcome, complete.records) == ("unchecked", ("state/0: 4 to 9, retention removed it",))
    assert "nothing is lost" not in application.certificate.verdict


def test_a_store_that_refuses_is_no_damage(application: _Application) -> None:
    application.back_up()
    place, reads = application.source.place, itertools.count(1)

    def refuses(_number: int, operation: str, name: str) -> Fault | None:
        """The first one who reads the log is the level `records`."""
        log = operation == "get_range" and ".log" in name
        return Fault(before=StoreDenied("no", subject=name)) if log and next(reads) > 1 else None

    with pytest.raises(StoreDenied):
        application.verify(SourceRef(FaultyStore(place.store, refuses), place.repository, place.source))
    assert application.verify().document.verdict == GOOD


def test_an_object_that_is_read_ahead_for_its_markers_is_the_one_that_is_damaged(application: _Application) -> None:
    source = application.source
    source.back_up()
    source.transaction([(b"d", b"4")], 7, True)
    application.back_up()
    store = source.place.store
    second = sorted(info.name for info in store.list("sources/prod/topics/") if ".log" in info.name)[-1]
    data, info = store.get_with_info(second, 1 << 20)
    store.replace(second, data[:-1] + bytes([data[-1] ^ 1]), info.version)
    damaged = application.verify().document.damaged_objects
    assert [name for name in damaged if ".log" in name] == [second]


@pytest.mark.parametrize("role", ["application-cut", "cluster"])
def test_an_attachment_that_cannot_be_read_is_a_verdict(application: _Application, role: str) -> None:
    application.back_up()
    store = application.source.place.store
    (name,) = (info.name for info in store.list("sources/prod/") if f"/{role}." in info.name)
    data, info = store.get_with_info(name, 1 << 20)
    store.replace(name, data[:-2] + b"\n\n", info.version)
    found = application.verify().document
    assert (found.verdict, found.damaged_objects) == (DAMAGED, (name,))


def test_a_fold_leaves_the_logs_of_a_cut_alone_as_long_as_it_is_kept(application: _Application) -> None:
    """A restore of the cut ends at 3, and after a fold only 4 would be a restore point."""
    source = application.source
    kept = application.back_up()
    source.write([(b"a", b"5"), (b"b", b"6"), (b"c", b"7")])
    newest = source.back_up()
    (result,) = source.fold()
    assert result.reason == f"backup {kept} is the cut of an application, whose restore needs superseded records"
    with writing(source.place, "delete", utc_now, random_token) as session:
        delete(session, [kept], "test")
    assert [each.reason for each in source.fold()] == [""]
    assert source.values(newest) == {b"a": b"5", b"b": b"6", b"c": b"7"}

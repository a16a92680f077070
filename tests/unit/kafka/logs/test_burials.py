"""Burials that cannot be read are found, wherever the damage is known from; very many of a log are joined."""

from datetime import timedelta

import numpy as np
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.kafka.logs.burials import join_burials, read_buried, unreadable_burials
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName
from logkeep.repository.backups.burials import burials_by_log, put_burial
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BuriedLog, BuryAction, DeleteAction
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.verify.run import Verifier
from tests.support.scripted.backup import back_up, log_of
from tests.unit.repository.backups.test_burials import RUNS, Repository

LOGS = [log_of(0), log_of(1)]


def _unreadable(made: Repository, read: list[LogName]) -> set[LogName]:
    folded = read_chain(made.place)
    return unreadable_burials(made.place, folded, burials_by_log(folded, folded.last_id, LOGS), read)


@pytest.mark.parametrize(
    ("data", "listed"), [(None, True), (RUNS[:-1], True), (RUNS[:-1] + b"\1", False)], ids=["missing", "cut", "changed"]
)
def test_missing_and_damaged_burials(data: bytes | None, listed: bool) -> None:
    made = Repository()
    assert _unreadable(made, LOGS) == set()
    made.bury()
    assert _unreadable(made, LOGS) == set()
    folded = read_chain(made.place)
    name = layout.buried("prod", folded.burials(folded.last_id)[0].object.token)
    made.store.delete(name)
    if data is not None:
        made.store.put_new(name, data)
    assert _unreadable(made, LOGS) == {log_of(0)}
    assert _unreadable(made, []) == ({log_of(0)} if listed else set()), "a listing shows names and sizes"
    verifier = Verifier(made.place, InlineEngine(), this_process("verify"), made.clock, made.token)
    verifier.verify(BackupId(folded.last_id), "files")
    assert _unreadable(made, []) == {log_of(0)}


def _bury_in_each(made: Repository, offsets: list[set[int]]) -> list[int]:
    """One backup after the other, each of which buries some offsets of the first log."""
    ids = []
    for some in offsets:
        made.now += timedelta(hours=1)
        with writing(made.place, "backup", made.clock, made.token) as session:
            runs = encode_runs(BuriedOffsets.of(np.array(sorted(some), np.int64)))
            ref = put_burial(session.place, runs, made.token())
            session.commit(BuryAction(session.folded.last_id + 1, (BuriedLog(log_of(0), ref, len(some)),), "test"))
        ids.append(back_up(made.place, {0: 9, 1: 5}, InlineEngine(), made.clock, made.token).id)
    return ids


def _buried(made: Repository, backup: int) -> list[int]:
    refs = [each.object for each in read_chain(made.place).burials(backup)]
    found = read_buried(made.place, refs)
    every = np.arange(100)
    return every[found.hides(every)].tolist() if found is not None else []


def _join(made: Repository, many: int) -> int:
    with writing(made.place, "backup", made.clock, made.token) as session:
        return join_burials(session, many)


def test_burials_that_no_kept_backup_can_distinguish_become_one() -> None:
    made = Repository()
    ids = _bury_in_each(made, [{n, n + 50} for n in range(10)])
    before = {backup: _buried(made, backup) for backup in ids}
    assert _join(made, 5) == 0, "a kept backup lies between any two of them"
    with writing(made.place, "delete", made.clock, made.token) as session:
        session.commit(DeleteAction(tuple(i for i in ids if i not in (ids[4], ids[9])), "pruned"))
    assert _join(made, 10) == 0, "so few are left alone"
    assert _join(made, 5) == 10
    assert len(read_chain(made.place).buried or ()) == 2
    for backup in (ids[4], ids[9]):
        assert _buried(made, backup) == before[backup]
        assert sum(b.offsets for b in read_chain(made.place).burials(backup)) == len(before[backup])
    assert _join(made, 1) == 0


def test_burials_are_not_joined_where_the_number_of_offsets_would_change() -> None:
    """A backup recorded how many are buried: fewer would look like a lost burial."""
    made = Repository()
    _bury_in_each(made, [{1, 2}, {2, 3}])
    with writing(made.place, "delete", made.clock, made.token) as session:
        session.commit(DeleteAction((session.folded.completed[-2].id,), "pruned"))
    assert _join(made, 1) == 0


def test_burials_of_a_backup_that_is_not_decided_are_not_joined() -> None:
    """They are forgotten if it fails."""
    made = Repository()
    with writing(made.place, "backup", made.clock, made.token) as session:
        for some in ({1}, {2}):
            runs = encode_runs(BuriedOffsets.of(np.array(sorted(some), np.int64)))
            logs = (BuriedLog(log_of(0), put_burial(session.place, runs, made.token()), 1),)
            session.commit(BuryAction(session.folded.last_id + 1, logs, "test"))
        assert join_burials(session, 1) == 0

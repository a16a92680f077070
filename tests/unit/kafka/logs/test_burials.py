"""Logs whose burials cannot be read are found, wherever the damage is known from."""

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.logs.burials import unreadable_burials
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from tests.support.scripted.backup import log_of
from tests.unit.repository.test_burials import RUNS, Repository

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

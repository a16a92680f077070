"""What a backup found missing when it was taken is told by every later look at it, though all its files are whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.zookeeper.convert import import_bundle
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.verify.recorded_losses import missing_when_taken
from logkeep.zookeeper.verify.run import Level, VerifiedFiles
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_directories import INLINE, MadeServer, bundled
from tests.support.zookeeper.repositories import new_place

LEVELS = ("files", "data", "replay")


def _server(root: Path, *, says: int | None, logs: bool = True) -> MadeServer:
    server = MadeServer(root / "server", zxid=says)
    server.snapshot(5, nodes=range(1, 6))
    if logs:
        server.log(range(6, 9), creating=True)
    return server


def _verified(bundle: Path, level: str) -> tuple[int, dict[str, Any]]:
    ended = zkbackup("verify", f"--backup-dir={bundle}", f"--level={level}", "--format=json", home=bundle.parent.parent)
    return ended.returncode, json.loads(ended.stdout)


def _listed(base: Path) -> str:
    told = zkbackup("list", f"--backup-base-dir={base}", "--format=json", home=base.parent)
    return str(json.loads(told.stdout)["backups"][0]["status"])


@pytest.mark.parametrize("level", LEVELS)
def test_the_last_transactions_of_the_server_in_no_log(tmp_path: Path, level: str) -> None:
    view, done = bundled(_server(tmp_path, says=9), tmp_path / "backups", "one")
    assert done.exit_code == 21
    code, said = _verified(view.path, level)
    assert (code, said["status"], said["quality_score"]) == (10, "partial", 70)
    assert "when it was taken: the server has processed 0x9" in str(said["findings"])
    assert _listed(tmp_path / "backups") == "partial"


@pytest.mark.parametrize("level", LEVELS)
def test_a_backup_without_the_logs_of_its_server_is_nothing_to_rely_on(tmp_path: Path, level: str) -> None:
    view, done = bundled(_server(tmp_path, says=9, logs=False), tmp_path / "backups", "one")
    assert done.exit_code == 21
    code, said = _verified(view.path, level)
    assert (code, said["status"], said["quality_score"], said["restorable"]) == (10, "damaged", 0, False)
    assert _listed(tmp_path / "backups") == "damaged"


def test_where_nobody_can_be_asked_it_is_said_that_there_is_no_log(tmp_path: Path) -> None:
    _, done = bundled(_server(tmp_path, says=None, logs=False), tmp_path / "backups", "one")
    told = {finding.code: finding for finding in done.findings}
    assert (done.exit_code, told.keys() >= {"no-log-seen", "server-unreachable"}) == (2, True)
    assert "--zk-log-dir" in told["no-log-seen"].remedy


def _found(*kinds: Class, end: int | None = 8) -> VerifiedFiles:
    seen = tuple(FileFinding(kind=kind, severity=Severity.WARNING, where="x", what="") for kind in kinds)
    return VerifiedFiles(level=Level.DATA, seen=seen, restorable=True, end=end)


@pytest.mark.parametrize(("again", "repaired", "told"), [(False, False, 1), (True, False, 0), (False, True, 0)])
def test_a_hole_is_told_where_a_look_did_not_see_it_again(again: bool, repaired: bool, told: int) -> None:
    """Behind the last record that is kept no look sees one."""
    hole = Finding(code="lost-transactions", severity=Severity.DAMAGE, where="member a", what="no log holds 0x9")
    found = _found(*([Class.LOST_TRANSACTIONS] if again else []))
    assert len(list(missing_when_taken([hole], found, [], repaired=repaired))) == told


@pytest.mark.parametrize("code", ["behind-the-server", "no-log"])
@pytest.mark.parametrize(("end", "told"), [(8, 1), (9, 0), (None, 1)])
def test_what_one_member_lacks_is_no_loss_where_others_hold_all(code: str, end: int | None, told: int) -> None:
    finding = Finding(code=code, severity=Severity.DAMAGE, where="member b", what="")
    members = [Member(name="a", zxid=9), Member(name="b", zxid=7), Member(name="c")]
    assert len(list(missing_when_taken([finding], _found(end=end), members, repaired=False))) == told


def test_losses_at_the_end_of_the_logs_stay_losses_at_every_level(tmp_path: Path) -> None:
    """A log that contradicts the one before it, and goes on behind its end: nobody sees that in what is kept."""
    server = MadeServer(tmp_path / "server", zxid=None)
    server.snapshot(5, nodes=range(1, 6))
    server.log(range(6, 9), creating=True)
    server.log([7, 8, 9, 10], data=b"other")
    view, done = bundled(server, tmp_path / "backups", "one")
    assert (done.exit_code, "lost-transactions" in {f.code for f in done.findings}) == (21, True)
    for level in LEVELS:
        assert _verified(view.path, level)[0] == 10, level
        assert _listed(tmp_path / "backups") == "partial", level


def test_an_import_keeps_what_was_missing(tmp_path: Path) -> None:
    view, done = bundled(_server(tmp_path, says=9), tmp_path / "backups", "one")
    place = new_place()
    with archiving(place, clock=utc_now, tokens=random_token) as sink:
        imported = import_bundle(view, sink, INLINE)
    assert (done.exit_code, imported.exit_code) == (21, 21)
    entry = read_chain(place).completed[-1]
    look = DeepVerification(entry, Level.REPLAY)
    Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=look).verify(
        BackupId(entry.id), Level.REPLAY
    )
    assert look.judged is not None
    assert (look.judged.exit_code, look.judged.condition) == (10, Condition.PARTIAL)

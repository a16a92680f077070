"""Which failures of a real server speak against a backup: only its own refusal of the files does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep import errors
from logkeep.embedded import zookeeper_boot
from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.restore.drill import DrillOutcome, drill
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.values import ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import ToEnd
from logkeep.zookeeper.timeline.verified_path import choose
from logkeep.zookeeper.verify.boot import Boot, BootedServer
from logkeep.zookeeper.verify.run import Level, verify
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.handmade_history import Past, backup_of
from tests.support.zookeeper.repositories import archived, new_place, newest

OF_THE_CHECKER = (
    errors.ServerFailed("jars could not be resolved: no registry"),
    errors.EngineUnavailable("no Java runtime found"),
    errors.ClusterUnreachable("no answer in time"),
    errors.NotAuthorised("an ACL forbids it"),
)


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    server, made = MadeServer(tmp_path / "server", zxid=4), new_place()
    server.snapshot(0)
    server.log([1, 2, 3, 4])
    archived(made, server)
    return made


def failing(error: errors.LogkeepError) -> Boot:
    @contextmanager
    def start(_data_dir: Path) -> Iterator[BootedServer]:
        raise error
        yield

    return start


def refusing() -> Boot:
    error = errors.ServerRefused("it exited while starting", subject="ZooKeeper", remedy="see /tmp/gone/server.log")
    error.add_note("\n".join(["first", *(f"line {n}" for n in range(9)), "IOException:\x1b[1m Unreasonable length"]))
    return failing(error)


def verified(place: SourceRef, boot: Boot, scratch: Path) -> VerifyResult:
    entry = read_chain(place).completed[-1]
    look = DeepVerification(entry, Level.BOOT, boot, scratch)
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=look)
    return verifier.verify(BackupId(entry.id), Level.BOOT)


def drilled(place: SourceRef, boot: Boot, data_dir: Path) -> DrillOutcome:
    data_dir.mkdir()
    view = newest(place)
    chosen = choose(view, ToEnd())
    target = ServerTarget(data_dir=data_dir, log_dir=data_dir)
    wish = ZooKeeperRestoreOptions(targets=(target,), sessions=Sessions.DROP, alone=True)
    prepared = prepare(view, chosen.path, wish, replayed=chosen.replayed)
    return drill(prepared, data_dir, boot, "journal", utc_now, random_token)


def test_a_server_that_refuses_the_files_is_damage_with_its_last_words(place: SourceRef, tmp_path: Path) -> None:
    (finding,) = verified(place, refusing(), tmp_path / "data").findings
    assert (finding.code, finding.severity) == ("boot-failed", "damage")
    assert finding.what.endswith(
        "the end of its log: line 5 | line 6 | line 7 | line 8 | IOException: [1m Unreasonable length"
    )
    assert "log" not in finding.remedy


def test_in_a_drill_too(place: SourceRef, tmp_path: Path) -> None:
    (finding,) = drilled(place, refusing(), tmp_path / "data").findings
    assert finding.code == "boot-failed"
    assert "Unreasonable length" in finding.what


@pytest.mark.parametrize("error", OF_THE_CHECKER, ids=lambda error: error.slug())
def test_trouble_of_the_checker_is_an_error_and_nothing_is_remembered(
    place: SourceRef, tmp_path: Path, error: errors.LogkeepError
) -> None:
    with pytest.raises(type(error)) as caught:
        verified(place, failing(error), tmp_path / "data")
    assert caught.value is error
    assert stored_verifications(place) == []
    with pytest.raises(type(error)):
        drilled(place, failing(error), tmp_path / "drill")


@pytest.mark.parametrize("error", OF_THE_CHECKER, ids=lambda error: error.slug())
def test_trouble_of_the_checker_hides_no_damage_that_was_found_without_a_server(
    tmp_path: Path, error: errors.LogkeepError
) -> None:
    view = backup_of(Past(range(1, 31)), snapshot_at=[0, 10], logs=(range(1, 11), range(11, 31)))
    snapshot = view.snapshots[0]
    view.objects[snapshot] = view.objects[snapshot][:-1] + b"?"  # the end is reached without it
    found = verify(view, Level.BOOT, boot=failing(error), scratch=tmp_path / "data")
    assert (found.level, found.failed) == (Level.REPLAY, True)
    told = next(seen for seen in found.seen if seen.kind is Class.NOT_BOOTED)
    assert (told.severity, told.what, told.remedy) == (
        "warning",
        f"no server could check it: {error.what}",
        error.remedy,
    )


class Unstartable:
    """In place of a real server: notes how it was to be started, and fails."""

    def __init__(self, directory: Path, _cache: Path, *, java_options: Sequence[str], **_: object) -> None:
        self.log, self.client, self.password = directory / "server.log", "127.0.0.1:1", "x"
        self.java_options = java_options

    def __enter__(self) -> None:
        error = errors.ServerFailed("it did not answer within 180 s", remedy=f"see {self.log}")
        error.add_note(" ".join(self.java_options))
        raise error

    def __exit__(self, *_exc: object) -> None:
        return


def test_a_server_takes_records_of_any_size_and_nobody_is_sent_to_a_log_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_boot, "EmbeddedZooKeeper", Unstartable)
    with pytest.raises(errors.ServerFailed) as caught, zookeeper_boot.boot_of("3.9.5", tmp_path)(tmp_path / "data"):
        pass
    assert caught.value.remedy == f"the end of the server's log: -Djute.maxbuffer={zookeeper_boot.MAXBUFFER}"

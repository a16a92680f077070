"""A run that follows outlives what passes by itself: another run's lease, a task that failed, a store that is busy, a
server that is down."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from logkeep import errors
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from logkeep.repository.follow import Follower, FollowRound
from logkeep.store.base import ObjectWriter, Store
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions
from logkeep.zookeeper.follow import FollowedEnsemble
from logkeep.zookeeper.repo.sink import ArchiveSink, archiving
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.zookeeper.handmade_directories import MadeServer, rounds
from tests.support.zookeeper.repositories import new_place, newest, zxids

_TEMPORARY = (errors.TaskFailed, errors.SourceDamaged, errors.LeaseLost, errors.StoreBusy, errors.StoreFull)
Archiving = Callable[[], AbstractContextManager[ArchiveSink]]


class Rest:
    """Rounds; what is to happen between them does."""

    def __init__(self, between: Callable[[], None], number: int = 2) -> None:
        self.left, self.between = number, between

    @property
    def requested(self) -> bool:
        return self.left <= 0

    def wait(self, _seconds: float) -> None:
        self.left -= 1
        self.between()

    def raising(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    made = MadeServer(tmp_path / "server", zxid=4)
    made.snapshot(2)
    made.log([1, 2, 3, 4])
    return made


def followed(
    server: MadeServer,
    place: SourceRef,
    opened: Archiving,
    between: Callable[[], None],
    settings: RoundSettings | None = None,
    number: int = 2,
) -> list[FollowRound[ZooKeeperBackupDone]]:
    heard: list[FollowRound[ZooKeeperBackupDone]] = []
    options = ZooKeeperBackupOptions((server.place("zk1"),))
    source = FollowedEnsemble(place, opened, options, settings or rounds(server), lambda _, word: word, 0.0)
    Follower(source, Rest(between, number), 0.0, heard.append).run()
    return heard


def opening(place: SourceRef) -> AbstractContextManager[ArchiveSink]:
    return archiving(place, clock=utc_now, tokens=random_token)


def test_the_lease_of_a_prune_beside_it_is_waited_for(server: MadeServer) -> None:
    place = new_place()
    with ExitStack() as pruning:
        pruning.enter_context(writing(place, "prune", utc_now, random_token))
        heard = followed(server, place, lambda: opening(place), pruning.close)
    assert [type(one.error) for one in heard] == [errors.Locked, type(None)]
    assert zxids(newest(place)) == [(1, 4)]


@pytest.mark.parametrize(
    "kind", [errors.TaskFailed, errors.SourceDamaged, errors.LeaseLost, errors.StoreBusy, errors.StoreFull]
)
def test_a_round_that_failed_for_what_passes_is_told_and_tried_again(
    server: MadeServer, kind: type[errors.LogkeepError]
) -> None:
    place = new_place()
    failing: list[errors.LogkeepError] = [kind("it happened")]
    heard = followed(server, place, lambda: _failing_first(place, failing), lambda: None)
    assert [type(one.error) for one in heard] == [kind, type(None)]
    assert zxids(newest(place)) == [(1, 4)]


@pytest.mark.parametrize("kind", [errors.StoreDenied, errors.BackupFailed])
def test_what_no_retry_cures_ends_the_run(server: MadeServer, kind: type[errors.LogkeepError]) -> None:
    """A round copies everything again: what came to nothing would fill the store round by round."""
    place = new_place()
    failing: list[errors.LogkeepError] = [kind("it happened")]
    with pytest.raises(kind):
        followed(server, place, lambda: _failing_first(place, failing), lambda: None)


class FullStore(DelegatingStore):
    """Has room for so many more objects; after that it refuses every write, also the release of a lease."""

    def __init__(self, inner: Store, room: int) -> None:
        super().__init__(inner)
        self.room = room

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        self.room -= 1
        self._refuse_if_full(name)
        return super().open_new(name, size_hint)

    def replace(self, name: str, data: bytes, version: str) -> None:
        self._refuse_if_full(name)
        super().replace(name, data, version)

    def _refuse_if_full(self, name: str) -> None:
        if self.room < 0:
            raise errors.StoreFull("no space left on the device", subject=name)


def test_a_full_store_is_left_as_it_was_and_the_next_round_needs_no_expired_lease(server: MadeServer) -> None:
    store = FullStore(MemoryStore(), room=1)
    place = new_place(store)
    stored: list[str] = []

    def room_again() -> None:
        if store.room < 0:
            stored.extend(info.name for info in store.list("sources/zk/") if "/snapshots/" in info.name)
        store.room = 100

    heard = followed(server, place, lambda: opening(place), room_again)
    assert [type(one.error) for one in heard] == [errors.StoreFull, type(None)]
    assert stored == [], "the snapshot that the failed round had stored"
    assert zxids(newest(place)) == [(1, 4)]


@contextmanager
def _failing_first(place: SourceRef, failing: list[errors.LogkeepError]) -> Iterator[ArchiveSink]:
    if failing:
        raise failing.pop()
    with opening(place) as sink:
        yield sink


@dataclass
class OutageServer(MadeServer):
    """Answers so many more requests in the round that is next; None: all."""

    answers: int | None = None

    def settings(self) -> RoundSettings:
        made = rounds(self)

        def ask(host: str) -> ServerState:
            if self.answers is not None:
                self.answers -= 1
                if self.answers < 0:
                    raise errors.ClusterUnreachable("the server is down", subject=host)
            return made.ask(host)

        return replace(made, ask=ask)


@pytest.mark.parametrize("answers", [0, 1, 2], ids=["at-the-start", "within", "at-the-end"])
@pytest.mark.parametrize("half", [False, True], ids=["whole", "half-a-snapshot"])
@pytest.mark.parametrize("snapshot", [True, False], ids=["a-snapshot", "none-yet"])
def test_a_server_that_is_down_for_a_while_ends_no_run(
    tmp_path: Path, answers: int, half: bool, snapshot: bool
) -> None:
    """Its newest transactions are unproven until it answers again, and no round reports a loss."""
    place, server = new_place(), OutageServer(tmp_path / "server", zxid=3)
    if snapshot:
        server.snapshot(0)
    server.log([1, 2, 3])

    def killed() -> None:
        server.log(range(1, 7))
        server.zxid, server.answers = 5, answers  # it has logged 6, and not processed it
        if half:
            path = server.snapshot(5)
            path.write_bytes(path.read_bytes()[:-10])

    def started() -> None:
        server.log(range(1, 8))
        server.zxid, server.answers = 7, None

    changes = [killed, started]

    def between() -> None:
        if changes:
            changes.pop(0)()

    heard = followed(server, place, lambda: opening(place), between, server.settings(), 3)
    assert [one.error for one in heard] == [None, None, None]
    done = [one.done for one in heard if one.done is not None]
    assert [one.exit_code for one in done] == [0, 2, 0]
    unfinished = {"snapshot-unfinished"} if half else set()
    assert [{f.code for f in one.findings} for one in done] == [set(), {"server-unreachable"} | unfinished, unfinished]
    assert zxids(newest(place)) == [(1, 3), (4, 7)]

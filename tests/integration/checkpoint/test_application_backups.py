"""Backups of a running application: what is copied, pinned and freed, and that processing never waits."""

import logging
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec import msgpack

from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits, PartitionWorker
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.archive.log_names import log_of
from logkeep.checkpoint.archive.settle import Settlement, settle
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.restore.run import prepare, restore
from logkeep.checkpoint.steps import run
from logkeep.engine.inline import InlineEngine
from logkeep.errors import Locked, StoreUnreachable
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.base import Store
from tests.support.cli.filled_repository import document_of
from tests.support.cli.processes import logkeep
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.processes import wait_for
from tests.support.running_application import ask, bank, copies, ended, new_repository, take

_SMALL = KeepingLimits(snapshot_every_bytes=1 << 30, segment_bytes=2_000)


def _place(store: Store) -> SourceRef:
    from logkeep.repository.access import open_repository  # noqa: PLC0415 - beside its only use

    return open_repository(store).place("bank")


@contextmanager
def _running(directory: Path, store: Store, limits: KeepingLimits = _SMALL) -> Iterator[Runtime]:
    directory.mkdir(exist_ok=True)
    lock = DirectoryLock(directory)
    made = open_directory(directory, "bank", 2, utc_now())
    runtime = Runtime(bank(), made, RuntimeOptions(limits, lambda: _place(store)))
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop()
        lock.release()


def _work(runtime: Runtime, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        runtime.submit("move", f"a{number % 7}", {"amount": 1, "to": f"b{number % 5}"})


def _snapshot(worker: PartitionWorker) -> int:
    worker.keep_once(1)
    return worker.snapshots.list()[-1].position


def test_r49_a_backup_has_the_log_exactly_up_to_its_create(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    with _running(tmp_path / "data", place.store) as runtime:
        _work(runtime, 30)
        assert take(place, runtime, 7).state == "completed"
        _work(runtime, 10)
        entry = read_chain(place).entry(BackupId(7))
        assert entry is not None
        manifest = read_manifest(place, entry)
        for copy, worker in zip(copies(place, 7), runtime.workers, strict=True):
            cut = next(one for one in manifest.cut if one.log == log_of("bank", 0, copy.partition))
            last = worker.log.read(copy.position, 1)[0]
            assert (cut.start, cut.end, last.kind.name) == (0, copy.position + 1, "CREATE")
            assert (copy.log_start, copy.snapshot_position, copy.bytes > 0) == (0, -1, True)
            assert copy.checkpoints == ((7, copy.position, copy.cut_end),)
        assert sum(len(copy.state_digest) for copy in copies(place, 7)) == 128


def test_r44_the_second_backup_copies_the_log_since_the_first(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    with _running(tmp_path / "data", place.store) as runtime:
        _work(runtime, 300)
        positions = [_snapshot(worker) for worker in runtime.workers]
        assert take(place, runtime, 1).state == "completed"
        _work(runtime, 3)
        for worker in runtime.workers:
            _snapshot(worker)
        assert take(place, runtime, 2, base=1).state == "completed"
        first, second = copies(place, 1), copies(place, 2)
        assert [copy.snapshot_position for copy in first] == positions
        assert [copy.snapshot_position for copy in second] == positions  # archived already, and the log since is small
        assert all(new.bytes < old.bytes / 5 for new, old in zip(second, first, strict=True))
        assert all(new.log_start <= old.cut_end for new, old in zip(second, first, strict=True))


def test_r24_r48_r53_r54_r56_the_processor_never_stops_while_the_store_is_frozen(tmp_path: Path) -> None:
    frozen, thaw = threading.Event(), threading.Event()

    def freeze(_number: int, operation: str, name: str) -> Fault | None:
        if operation == "open_new" and "bank.log" in name and not thaw.is_set():
            frozen.set()
            thaw.wait()
        return None

    store = new_repository(tmp_path / "repository")
    place = _place(store)
    with _running(tmp_path / "data", FaultyStore(store, freeze)) as runtime:
        _work(runtime, 60)
        pinned = [_snapshot(worker) for worker in runtime.workers]
        create = ask(place, runtime, 5)
        for partition in range(2):
            runtime.create(partition, create)
        assert frozen.wait(120)
        wait_for(lambda: len(runtime.answers(5)) == 2, "both answers")
        for number in range(3):
            _work(runtime, 40, number * 40)
            for worker in runtime.workers:
                _snapshot(worker)
        for worker, position in zip(runtime.workers, pinned, strict=True):
            kept = [one.position for one in worker.snapshots.list()]
            assert position in kept
            assert len(kept) == 3
            assert worker.snapshots.reserved_from == worker.log.start == 0
            assert worker.log.read(0, 1)[0].position == 0
        assert copies(place, 5) == []
        assert run(settle(place, 5, utc_now, random_token), lambda _: False).state == "ongoing"
        thaw.set()
        assert ended(place, 5).state == "completed"
        for worker, position in zip(runtime.workers, pinned, strict=True):
            archived = copies(place, 5)[worker.processor.partition].cut_end
            wait_for(partial(_is_free, worker, archived), "the end of the pins")
            assert position not in [one.position for one in worker.snapshots.list()]
            worker.keep_once(1 << 30)
            assert worker.log.start > 0


def _is_free(worker: PartitionWorker, archived_end: int | None = None) -> bool:
    """Whether nothing is pinned, and the log is known to be archived up to a position."""
    return worker.snapshots.reserved_from is None and archived_end in (None, worker.keeping.archived_end)


def test_r51_s8_an_error_of_the_store_fails_the_backup_and_frees_its_pins(tmp_path: Path) -> None:
    def broken(_number: int, operation: str, name: str) -> Fault | None:
        if operation == "open_new" and "bank.log" in name:
            return Fault(before=StoreUnreachable("the store does not answer"))
        return None

    store = new_repository(tmp_path / "repository")
    place = _place(store)
    with _running(tmp_path / "data", FaultyStore(store, broken)) as runtime:
        _work(runtime, 10)
        settled = take(place, runtime, 3)
        assert settled.state == "failed"
        assert settled.reason.startswith("partition ")
        assert "the store does not answer" in settled.reason
        for worker in runtime.workers:
            wait_for(partial(_is_free, worker), "the end of the pins")
        _work(runtime, 10)
        assert all(copy.outcome == "failed" for copy in copies(place, 3))


def test_s8_an_error_of_the_store_that_passes_fails_no_backup(tmp_path: Path) -> None:
    """Each partition's log is refused twice."""
    refused = Counter[str]()

    def broken(_number: int, operation: str, name: str) -> Fault | None:
        log = name.rpartition("/")[0]
        if operation != "open_new" or "bank.log" not in name or refused[log] == 2:
            return None
        refused[log] += 1
        return Fault(before=StoreUnreachable("the store does not answer"))

    store = new_repository(tmp_path / "repository")
    place = _place(store)
    with _running(tmp_path / "data", FaultyStore(store, broken)) as runtime:
        _work(runtime, 10)
        assert take(place, runtime, 3).state == "completed"
    assert set(refused.values()) == {2}


def test_r45_without_a_snapshot_below_the_checkpoint_the_backup_fails(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    limits = KeepingLimits(1 << 30, most_unarchived_bytes=1, segment_bytes=500)
    with _running(tmp_path / "data", place.store, limits) as runtime, ExitStack() as keepers:
        _work(runtime, 40)
        for worker in runtime.workers:
            _snapshot(worker)
            keepers.enter_context(worker._one_keeper)  # no further snapshot is taken
            assert worker.keeping.compact(worker.log) > 0
            for one in worker.snapshots.list():
                worker.snapshots.path(one.position).unlink()
        settled = take(place, runtime, 3)
        assert settled.state == "failed"
        assert "the log begins at" in settled.reason


def test_a_log_above_its_bound_is_compacted_and_the_lost_span_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "logkeep.application")  # a command with -q in the same process raised it
    place = _place(new_repository(tmp_path / "repository"))
    limits = KeepingLimits(1 << 30, most_unarchived_bytes=4_000, segment_bytes=500)
    with _running(tmp_path / "data", place.store, limits) as runtime:
        _work(runtime, 5)
        assert runtime.facts().unarchived_bytes == max(worker.log.size_bytes for worker in runtime.workers)
        assert take(place, runtime, 1).state == "completed"
        behind = [w.log.size_from(copy.cut_end) for w, copy in zip(runtime.workers, copies(place, 1), strict=True)]
        wait_for(lambda: runtime.facts().unarchived_bytes == max(behind), "what lies behind the archived ends")
        _work(runtime, 80)
        assert runtime.facts().unarchived_bytes > 4_000
        for worker in runtime.workers:
            _snapshot(worker)
        assert take(place, runtime, 2, base=1).state == "completed"
        entry = read_chain(place).entry(BackupId(2))
        assert entry is not None
        findings = [one.code for one in read_manifest(place, entry).findings]
        for before, after in zip(copies(place, 1), copies(place, 2), strict=True):
            assert after.lost == ((before.cut_end, after.log_start),)
            assert before.cut_end < after.log_start <= after.snapshot_position + 1
            assert f"partition {after.partition}: positions [{before.cut_end}, " in caplog.text
            assert f"{after.log_start}) were compacted before they were archived" in caplog.text
        assert findings == ["log-lost", "log-lost"]


def test_r47_a_create_that_comes_again_copies_nothing(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    with _running(tmp_path / "data", place.store) as runtime:
        _work(runtime, 3)
        create = ask(place, runtime, 4)
        for _ in range(2):
            for partition in range(2):
                runtime.create(partition, create)
        assert ended(place, 4).state == "completed"
        assert [copy.partition for copy in copies(place, 4)] == [0, 1]
        wait_for(lambda: all(answer.latest == 4 for answer in runtime.answers(4).values()), "the second answers")


def test_a_backup_that_a_partition_jumped_over_fails_at_once(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    with _running(tmp_path / "data", place.store) as runtime:
        _work(runtime, 3)
        jumped, create = ask(place, runtime, 4), ask(place, runtime, 5)
        runtime.create(1, jumped)
        wait_for(lambda: 1 in runtime.answers(4), "the answer of partition 1")
        for partition in range(2):
            runtime.create(partition, create)
        found = ended(place, 4)
        assert (found.state, "jumped over: it went from checkpoint" in found.reason) == ("failed", True)
        assert found.reason.startswith("partition 0: ")
        assert ended(place, 5).state == "completed"
        assert [copy.outcome for copy in copies(place, 4) if copy.partition == 0] == ["failed"]


@pytest.mark.parametrize(
    ("damage", "later", "segment_bytes"),
    [("none", 0, 1), ("missing", 0, 1), ("missing", 5, 500), ("cut", 5, 1), ("overwritten", 5, 500)],
)
def test_a_compacted_partition_continues_from_its_state_or_a_snapshot(
    tmp_path: Path, damage: str, later: int, segment_bytes: int
) -> None:
    """With segments of one batch the log begins exactly behind the snapshot."""
    store = new_repository(tmp_path / "repository")
    limits = KeepingLimits(1 << 30, most_unarchived_bytes=1, segment_bytes=segment_bytes)
    with _running(tmp_path / "data", store, limits) as runtime:
        _work(runtime, 40)
        wait_for(lambda: sum(_balances(runtime).values()) == 0, "all messages")
        for worker in runtime.workers:
            _snapshot(worker)
            assert worker.keeping.compact(worker.log) > 0
        _work(runtime, later)
        wait_for(lambda: sum(_balances(runtime).values()) == 0, "all messages")
        before = _balances(runtime)
    for path in (tmp_path / "data").glob("p*/state.sqlite"):
        _damage(path, damage)
    with _running(tmp_path / "data", store, limits) as runtime:
        assert all(worker.log.start > 0 for worker in runtime.workers)
        assert _balances(runtime) == before
        _work(runtime, 3)


def _balances(runtime: Runtime) -> dict[str, int]:
    return {key: msgpack.decode(value) for worker in runtime.workers for key, value in worker.backend.items()}


def _damage(path: Path, how: str) -> None:
    if how == "none":
        return
    for beside in path.parent.glob("state.sqlite-*"):
        beside.unlink()
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        path.write_bytes(b"x" * path.stat().st_size)


def test_another_store_is_named_in_the_answer_and_copies_nothing(tmp_path: Path) -> None:
    place = _place(new_repository(tmp_path / "repository"))
    other = _place(new_repository(tmp_path / "other"))
    with _running(tmp_path / "data", other.store) as runtime:
        create = ask(place, runtime, 4)
        for partition in range(2):
            runtime.create(partition, create)
        wait_for(lambda: len(runtime.answers(4)) == 2, "both answers")
        assert {answer.repository for answer in runtime.answers(4).values()} == {other.repository}
        assert copies(place, 4) == []


def test_r43_r50_only_the_leader_copies_and_its_receipt_is_the_last_object(tmp_path: Path) -> None:
    store = FaultyStore(new_repository(tmp_path / "repository"))
    place = _place(store)
    with _running(tmp_path / "data", store) as runtime:
        _work(runtime, 5)
        with pytest.raises(Locked):
            FileLog(tmp_path / "data" / "p0" / "log")
        assert take(place, runtime, 1).state == "completed"
        written = [call.name for call in store.calls if call.operation in ("put_new", "open_new")]
    for partition in range(2):
        files = [n for n, name in enumerate(written) if f"bank.log/h0/partition={partition}/" in name]
        receipts = [n for n, name in enumerate(written) if f"p{partition}.1" in name]
        assert files
        assert receipts
        assert max(files) < min(receipts)


def test_a_data_directory_that_was_put_back_to_an_earlier_state_is_backed_up_again(tmp_path: Path) -> None:
    place, data = _place(new_repository(tmp_path / "repository")), tmp_path / "data"
    with _running(data, place.store) as runtime:
        _work(runtime, 20)
        assert take(place, runtime, 1).state == "completed"
    shutil.copytree(data, tmp_path / "copy")
    with _running(data, place.store) as runtime:
        _work(runtime, 50)
        assert take(place, runtime, 2, base=1).state == "completed"
    shutil.rmtree(data)
    (tmp_path / "copy").rename(data)
    with _running(data, place.store) as runtime:
        for worker in runtime.workers:
            assert worker.actor is not None
            run(worker.actor.resume(None), lambda _: False)
            assert worker.keeping.archived_end == 0, "what backup 2 has of this log is not what comes now"
        _work(runtime, 60, 3)
        assert take(place, runtime, 3, base=2).state == "completed"
        _work(runtime, 5)
        assert take(place, runtime, 4, base=3).state == "completed"
    folded = read_chain(place)
    for checkpoint in (2, 3, 4):
        plan, into = prepare(place, folded, checkpoint), tmp_path / f"restored-{checkpoint}"
        staged = run(restore(place, folded, plan, into, b"", "x", lambda _: InlineEngine()), lambda _: False)
        assert all(partition.proven for partition in staged.partitions)
    assert [{copy.branch for copy in copies(place, taken)} for taken in (1, 2, 3, 4)] == [{0}, {0}, {3}, {3}]
    for verb in ("info", "verify"):
        shown = {taken: _findings(tmp_path, verb, taken) for taken in (2, 3, 4)}
        assert shown == {2: [], 3: [("log-branched", "bank.log/0 and 1 more log")], 4: []}, verb


def _findings(home: Path, verb: str, taken: int) -> list[tuple[str, str]]:
    done = logkeep(verb, str(taken), "-r", str(home / "repository"), "--json", home=home)
    assert done.returncode == 0, done.stderr
    return [(found["code"], found["where"]) for found in document_of(done.stdout)["findings"]]


def test_an_archived_snapshot_is_renewed_though_the_log_since_then_is_in_the_archive_only(tmp_path: Path) -> None:
    """Every backup finds two newer snapshots, and no more of the log than since the older one of them."""
    place = _place(new_repository(tmp_path / "repository"))
    with _running(tmp_path / "data", place.store) as runtime:
        used, base = list[int](), None
        for backup in range(1, 9):
            _work(runtime, 30)
            for worker in runtime.workers:
                _snapshot(worker)
            assert take(place, runtime, backup, base=base).state == "completed"
            base, copy, worker = backup, copies(place, backup)[0], runtime.workers[0]
            wait_for(partial(_is_free, worker, copy.cut_end), "the end of the pins")
            newest = worker.snapshots.list()[-1]
            used.append(copy.snapshot_position)
            assert copy.replay_bytes < newest.size_bytes, "what a restore has to replay"
        assert worker.log.start > used[1]
    assert 1 < len(set(used)) < 8


def test_a_leader_without_a_snapshot_of_its_own_continues_that_of_the_last_backup(tmp_path: Path) -> None:
    """On Kafka another process gets the partition, and has replayed its whole log."""
    place, data = _place(new_repository(tmp_path / "repository")), tmp_path / "data"
    with _running(data, place.store, KeepingLimits()) as runtime:
        _work(runtime, 30)
        for worker in runtime.workers:
            _snapshot(worker)
        assert take(place, runtime, 1).state == "completed"
        assert take(place, runtime, 2, base=1).state == "completed"
    for path in data.glob("p*/snapshots/*"):
        path.unlink()
    with _running(data, place.store, KeepingLimits()) as runtime:
        _work(runtime, 30)
        assert [worker.log.start for worker in runtime.workers] == [0, 0]
        assert take(place, runtime, 3, base=2) == Settlement(StateName.COMPLETED)
    second, third = copies(place, 2), copies(place, 3)
    assert all(copy.log_start > 0 for copy in second)
    assert [copy.snapshot_position for copy in third] == [copy.snapshot_position for copy in second]
    folded = read_chain(place)
    plan = prepare(place, folded, 3)
    staged = run(
        restore(place, folded, plan, tmp_path / "restored", b"", "x", lambda _: InlineEngine()), lambda _: False
    )
    assert all(partition.proven for partition in staged.partitions)

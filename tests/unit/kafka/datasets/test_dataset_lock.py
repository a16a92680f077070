"""The lock of a dataset in a bucket: who waits for whom, when a run is taken over, and what it does then."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from logkeep.errors import Locked, StoreBusy, StoreDenied, StoreUnreachable
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.prune import PrunedPartition, delete_segments
from logkeep.kafka.dataset_upkeep.segments import segments_of
from logkeep.kafka.dataset_upkeep.verify import missing_records, read_back
from logkeep.kafka.datasets import bucket_journal
from logkeep.kafka.datasets.bucket_journal import CLOCK, TAKEN_OVER_AFTER_S, HeldJournal
from logkeep.kafka.datasets.dataset_lock import lock_dataset
from logkeep.kafka.datasets.documents import read_document
from logkeep.kafka.datasets.follow import retry_cures
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import LogToExport, ReadCounts
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.dataset_exchange import ExchangeDocument, ExchangeState, read_journal
from logkeep.model.work import Progress
from logkeep.repository.chain.owner import this_process
from logkeep.store.base import LONGEST_REQUEST_S, Store
from logkeep.store.memory import MemoryStore
from logkeep.store.retrying import RetryingStore, RetryLimits
from logkeep.store.wrapper import DelegatingStore
from tests.support.cli.in_process import Here
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows

FORMS = ("kafka-backup-v1", "avro", "parquet")
LOG = DatasetLog("o", 0)
QUICK = RetryLimits(total_s=5, first_wait_s=0.01, longest_wait_s=0.01)


def topic(*offsets: int, value: bytes = b"old") -> ListedSource:
    return ListedSource(exportable_logs(exportable("o", 0, 0, offsets[-1] + 1, ID)), {LOG: rows(*offsets, value=value)})


def exports(store: Store, form: str) -> ListedExports:
    return ListedExports(store, form, segment_bytes=1)


def content(store: Store) -> dict[str, bytes]:
    names = [info.name for info in store.list("") if not info.name.startswith(".logkeep/")]
    return {name: store.get(name, 1 << 20) for name in names}


Elsewhere = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """Inside of it, runs are those of another host."""

    @contextmanager
    def inside() -> Iterator[None]:
        with monkeypatch.context() as patched:
            for module in ("bucket_rewrite", "bucket_journal"):
                patched.setattr(
                    f"logkeep.kafka.datasets.{module}.this_process",
                    lambda run: msgspec.structs.replace(this_process(run), host="elsewhere"),
                )
            yield

    return inside


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds since boot, as the test sets them."""
    now_s = [1000.0]
    monkeypatch.setattr("logkeep.kafka.datasets.bucket_journal._since_boot_s", lambda: now_s[0])
    return now_s


def before_call(store: Store, act: Callable[[], None], part: str, *operations: str) -> FaultyStore:
    """Another run acts right before the first such call."""
    waiting = [act]

    def plan(number: int, called: str, name: str) -> Fault | None:
        if waiting and called in operations and part in name:
            waiting.pop()()
        return None

    return FaultyStore(store, plan)


def refused(form: str, store: Store, elsewhere: Elsewhere, tried: list[str]) -> Callable[[], None]:
    """A rewrite on another host, which ends with 50."""

    def rewrite() -> None:
        with elsewhere(), pytest.raises(Locked) as error:
            exports(store, form).run(topic(1, 2, value=b"new"), "o")
        tried.append(str(error.value))

    return rewrite


def taken_over(store: Store, now_s: list[float]) -> None:
    with lock_dataset(DatasetTarget(store)):  # of this process, so at once
        now_s[0] += TAKEN_OVER_AFTER_S


def is_whole(store: Store) -> None:
    checked, document = list(read_back(DatasetTarget(store))), read_document(DatasetTarget(store))
    assert document is not None
    assert not missing_records(document.logs, checked)
    assert not [finding for each in checked for finding in each.findings]


def begun(form: str) -> MemoryStore:
    store = MemoryStore()
    exports(store, form).run(topic(0, 1, 2, 3))
    return store


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", [".logkeep/dataset.json", "0000000004"])
def test_no_rewrite_while_another_run_writes(form: str, part: str, elsewhere: Elsewhere) -> None:
    """Else its files and those of the other run were mixed, and `verify` found nothing."""
    store, alone, tried = begun(form), begun(form), list[str]()
    writes = before_call(store, refused(form, store, elsewhere, tried), part, "put_new", "open_new", "replace")
    exports(writes, form).run(topic(*range(8)))
    assert len(tried) == 1
    assert str(this_process("")) in tried[0]
    assert "writes this dataset" in tried[0]
    exports(alone, form).run(topic(*range(8)))
    assert content(store) == content(alone)
    is_whole(store)


@pytest.mark.parametrize("form", FORMS)
def test_no_other_run_while_a_topic_is_written_anew(form: str, elsewhere: Elsewhere) -> None:
    store, tried = begun(form), list[str]()

    def other() -> None:
        with elsewhere(), pytest.raises(Locked, match="writes o anew") as error:
            exports(store, form).run(topic(*range(8)))
        assert retry_cures(error.value), "the next round of --follow may succeed"
        tried.append(form)

    writes = before_call(store, other, ".logkeep/rewrite/", "put_new", "open_new")
    exports(writes, form).run(topic(1, 3, value=b"new"), "o")
    assert tried
    is_whole(store)


@dataclass(frozen=True)
class Stopped(ListedSource):
    """The run is stopped in the middle of its records, and goes on."""

    act: Callable[[], object] = lambda: None

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        for batch in super().read(planned, start, counts, progress):
            if batch.column("offset")[0].as_py() == 6:
                self.act()
            yield batch


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rewrite", [(), ("o",)])
def test_no_file_of_a_run_that_was_taken_over_while_it_read(form: str, rewrite: tuple[str, ...]) -> None:
    store, anew = begun(form), topic(1, 2, value=b"new")
    after = list[dict[str, bytes]]()

    def other() -> None:
        exports(store, form).run(anew, "o")  # of this process, so it takes over at once
        after.append({info.name: store.get(info.name, 1 << 20) for info in store.list("")})

    source = Stopped(topic(*range(9)).facts, topic(*range(9)).data, act=other)
    with pytest.raises(Locked):
        exports(store, form).run(source, *rewrite)
    assert {info.name: store.get(info.name, 1 << 20) for info in store.list("")} == after[0]
    is_whole(store)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "Commands":
    """Commands for a dataset in this store, with indexes that have to be written again."""
    store = begun(FORMS[0])
    for name in ("o/index_partition_000", "o/segment_partition_000_from_offset_0000000000_index"):
        store.delete(name)
    commands = Commands(Here(tmp_path), store, monkeypatch)
    monkeypatch.setattr("logkeep.cli.verbs.kafka.datasets.existing_dataset.opened_store", lambda *_: commands.reached)
    return commands


class Commands:
    def __init__(self, here: Here, store: MemoryStore, patch: pytest.MonkeyPatch) -> None:
        self.here, self.store, self.patch = here, store, patch
        self.reached: Store = store

    def run(self, verb: str, asked: Callable[[], object] | None = None, code: int = 0) -> None:
        """`asked` happens while the command asks its question."""
        more = ("--older-than", "1d", "--topics", "o") if verb == "prune" else ()
        if asked is not None:
            self.patch.setattr("logkeep.cli.frame.execute.Run.confirm", lambda *_: asked())
        self.here.run("kafka", "dataset", verb, "s3://bucket/dataset", *more, *(() if asked else ("--yes",)), code=code)


def test_no_rewrite_while_prune_asks_and_deletes(bucket: Commands, elsewhere: Elsewhere) -> None:
    tried = list[str]()
    bucket.run("reindex")
    bucket.run("prune", refused(FORMS[0], bucket.store, elsewhere, tried))
    assert len(tried) == 1
    assert sum(name.endswith("_records") for name in content(bucket.store)) == 1


def test_prune_deletes_nothing_once_it_was_taken_over(bucket: Commands, now_s: list[float]) -> None:
    bucket.run("reindex")
    before = content(bucket.store)
    bucket.run("prune", lambda: taken_over(bucket.store, now_s), code=50)
    assert content(bucket.store) == before


def test_reindex_plans_after_its_question(bucket: Commands) -> None:
    bucket.run("reindex", lambda: exports(bucket.store, FORMS[0]).run(topic(1, 2, value=b"new"), "o"))
    is_whole(bucket.store)
    assert sum(name.endswith("_records") for name in content(bucket.store)) == 2


def test_no_rewrite_while_reindex_writes(bucket: Commands, elsewhere: Elsewhere) -> None:
    tried = list[str]()
    act = refused(FORMS[0], bucket.store, elsewhere, tried)
    bucket.reached = before_call(bucket.store, act, "o/", "put_new", "replace")
    bucket.run("reindex")
    assert len(tried) == 1
    is_whole(bucket.store)


@pytest.mark.parametrize("operation", ["delete", "copy_new"])
def test_no_attempt_of_a_change_after_another_run_took_over(operation: str, now_s: list[float]) -> None:
    """The first attempt gets no answer. Another run takes over and completes, and later runs go on."""
    store, made = begun("avro"), list[str]()

    class Network(DelegatingStore):
        def delete(self, name: str) -> None:
            self._answer("delete", name)
            super().delete(name)

        def copy_new(self, name: str, to: str) -> None:
            self._answer("copy_new", to)
            super().copy_new(name, to)

        def _answer(self, called: str, name: str) -> None:
            if made:
                made.append(name)
            elif called == operation and name.startswith("topics/o/"):
                made.append(name)
                taken_over(store, now_s)
                raise StoreUnreachable("no answer", subject=name)

    with pytest.raises(Locked):
        exports(RetryingStore(Network(store), QUICK), "avro").run(topic(1, 3, value=b"new"), "o")
    assert len(made) == 1
    is_whole(store)


def test_the_age_of_a_run_that_is_taken_over_is_longer_than_its_last_step() -> None:
    assert TAKEN_OVER_AFTER_S == 7 * 60, "the guide says so"
    assert TAKEN_OVER_AFTER_S > bucket_journal._CHECKED_S + 2 * LONGEST_REQUEST_S
    assert bucket_journal._CHECKED_S > bucket_journal._RENEWED_EVERY_S


@pytest.mark.parametrize("operation", ["delete", "copy_new"])
def test_a_run_that_may_not_copy_or_delete_touches_nothing(operation: str) -> None:
    store = begun("avro")
    before = content(store)

    def plan(number: int, called: str, name: str) -> Fault | None:
        return Fault(before=StoreDenied("no", subject=name)) if called == operation else None

    allowed_less = FaultyStore(store, plan)
    with pytest.raises(StoreDenied):
        exports(allowed_less, "avro").run(topic(1, 3, value=b"new"), "o")
    assert content(store) == before
    exports(allowed_less, "avro").run(topic(*range(5)))  # it needs neither
    is_whole(store)
    exports(store, "avro").run(topic(1, 5, value=b"new"), "o")
    assert not list(store.list(".logkeep/rewrite/"))
    is_whole(store)


def _held(store: Store, host: str = "") -> HeldJournal:
    run = "a" * 16
    owner = this_process(run) if not host else msgspec.structs.replace(this_process(run), host=host)
    begun = ExchangeDocument(state=ExchangeState.WRITING, run=run, owner=owner, topics=(), prefixes=())
    return HeldJournal(store, begun, None)


def test_a_renewal_without_a_reply_is_not_taken_for_that_of_another_run() -> None:
    store, lost = MemoryStore(), list[str]()

    def plan(number: int, called: str, name: str) -> Fault | None:
        return Fault(after=StoreUnreachable("reply lost")) if called == "replace" and lost.pop() else None

    lost += ["", "", "lost"]
    journal = _held(FaultyStore(store, plan))
    assert journal.renew(), "it is tried again"
    journal.enter(ExchangeState.EXCHANGING)
    found = read_journal(store)
    assert found is not None
    assert found[0].state is ExchangeState.EXCHANGING


def test_the_journal_of_another_run_is_not_caught_up_with() -> None:
    store = MemoryStore()
    journal = _held(store)
    with lock_dataset(DatasetTarget(store)):
        assert not journal.renew()
        with pytest.raises(Locked):
            journal.check()


def test_a_clock_that_is_removed_meanwhile_means_that_the_owner_is_alive() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = MemoryStore(lambda: now[0])
    _held(store, "elsewhere")
    now[0] += timedelta(days=1)
    removed = before_call(store, lambda: store.delete(CLOCK), CLOCK, "head")
    with pytest.raises(Locked, match="on elsewhere writes this dataset"), lock_dataset(DatasetTarget(removed)):
        pass
    with lock_dataset(DatasetTarget(store)):
        pass


def test_a_task_of_a_run_that_was_taken_over_removes_nothing() -> None:
    """It took the index of a segment that the other run was writing for one that a killed run had left."""
    store, name = begun(FORMS[0]), "o/segment_partition_000_from_offset_0000000004_index"

    def overtaken() -> None:
        with (
            lock_dataset(DatasetTarget(store)) as held,
            lock_dataset(DatasetTarget(store)) as other,  # of this process, so at once
        ):
            other.files.put(name, b"\x01")
            KafkaBackupV1().writer(held.files, LOG, DatasetOptions(1))

    with pytest.raises(Locked):
        overtaken()
    assert store.get(name, 10) == b"\x01"


@pytest.mark.parametrize("form", FORMS)
def test_a_prune_that_may_not_delete_changes_nothing(form: str) -> None:
    store = begun(form)
    before = {info.name: info.version for info in store.list("")}

    def plan(number: int, called: str, name: str) -> Fault | None:
        return Fault(before=StoreDenied("no", subject=name)) if called == "delete" else None

    target = DatasetTarget(FaultyStore(store, plan))
    dataset = open_existing(target)
    gone = [PrunedPartition(*log, segments[:2], 2, "") for log, segments in segments_of(dataset).items()]
    with pytest.raises(StoreDenied):
        list(delete_segments(target, dataset.document, gone))
    assert {info.name: info.version for info in store.list("")} == before
    assert list(delete_segments(DatasetTarget(store), dataset.document, gone))
    is_whole(store)


def test_a_store_that_is_too_slow_for_a_renewal_ends_the_run(now_s: list[float]) -> None:
    """The renewals never ended, and nothing else was done."""
    store, renewals = MemoryStore(), list[str]()

    class Slow(DelegatingStore):
        def replace(self, name: str, data: bytes, version: str) -> None:
            self.inner.replace(name, data, version)
            renewals.append(name)
            now_s[0] += 31
            assert len(renewals) < 100

    journal = _held(Slow(store))
    journal.check()
    now_s[0] += 31
    with pytest.raises(StoreBusy, match="renewals"):
        journal.check()

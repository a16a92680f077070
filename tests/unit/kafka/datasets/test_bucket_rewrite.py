"""`--rewrite` in a bucket: killed after every store call, seen by other readers after each, taken over in time."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from logkeep.errors import Damaged, Locked, TargetUnsafe
from logkeep.kafka.dataset_upkeep.dataset import open_existing
from logkeep.kafka.dataset_upkeep.verify import missing_records, read_back
from logkeep.kafka.datasets.bucket_journal import TAKEN_OVER_AFTER_S
from logkeep.kafka.datasets.bucket_rewrite import hold_journal, removal_order
from logkeep.kafka.datasets.documents import read_document
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.dataset_exchange import JOURNAL, ExchangeDocument, ExchangeState, read_journal
from logkeep.repository.chain.owner import this_process
from logkeep.store.base import Store
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.kafka.listed_exports import ID, ListedExports, ListedSource, exportable, exportable_logs, rows

NEW_ID = "b" * 32
AFTERWARDS = ("the same again", "a run without --rewrite", "verify")
FORMS = ("kafka-backup-v1", "avro", "parquet")
Objects = dict[str, bytes]


class Dead(BaseException):
    """The process was killed: no call of it reaches the store any more."""


def settle(target: DatasetTarget) -> None:
    with hold_journal(target):
        pass


@dataclass
class Bucket:
    """A store whose clock the test sets, and which runs reach through stores of their own."""

    form: str
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    store: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(lambda: self.now)

    def exports(self, store: Store | None = None) -> ListedExports:
        return ListedExports(self.store if store is None else store, self.form, segment_bytes=1)

    def objects(self, prefix: str = "") -> Objects:
        return {info.name: self.store.get(info.name, 1 << 20) for info in self.store.list(prefix)}

    def of_other_tools(self) -> Objects:
        return {name: data for name, data in self.objects().items() if not name.startswith(".logkeep/")}


def before() -> ListedSource:
    logs = (exportable("o", 0, 0, 4, ID), exportable("o", 1, 0, 2, ID), exportable("other", 0, 0, 2, ID))
    return ListedSource(exportable_logs(*logs), {each.log: rows(*range(each.end), value=b"old") for each in logs})


def after() -> ListedSource:
    """`o` was compacted and created again: fewer records, other values, and a partition without any."""
    logs = (exportable("o", 0, 0, 6, NEW_ID), exportable("o", 1, 3, 3, NEW_ID), exportable("other", 0, 0, 3, ID))
    data = {DatasetLog("o", 0): rows(0, 2, 5, value=b"new"), DatasetLog("other", 0): rows(0, 1, 2, value=b"old")}
    return ListedSource(exportable_logs(*logs), data)


def begun(form: str) -> Bucket:
    bucket = Bucket(form)
    bucket.exports().run(before())
    return bucket


def written_anew(form: str) -> Objects:
    """The dataset that a rewrite must give: `o` as if it had never been there, and `other` continued."""
    fresh, bucket = Bucket(form), Bucket(form)
    fresh.exports().run(after())
    rest = exportable_logs(exportable("other", 0, 0, 2, ID))
    bucket.exports().run(ListedSource(rest, before().data))
    rest = exportable_logs(exportable("other", 0, 0, 3, ID))
    bucket.exports().run(ListedSource(rest, after().data))
    own = {name: data for name, data in fresh.of_other_tools().items() if _topic(name) == "o"}
    return own | bucket.of_other_tools()


def _topic(name: str) -> str:
    return name.removeprefix("topics/").partition("/")[0]


def killed(bucket: Bucket, call: int) -> bool:
    """Whether the run was killed after so many calls of the store."""

    def plan(number: int, operation: str, name: str) -> Fault | None:
        if number > call:
            raise Dead
        return None

    try:
        bucket.exports(FaultyStore(bucket.store, plan)).run(after(), "o")
    except Dead:
        return True
    return False


def seen(bucket: Bucket) -> Iterator[Objects]:
    """What the store has after each call of a whole run."""
    found: list[Objects] = []

    def plan(number: int, operation: str, name: str) -> Fault | None:
        found.append(bucket.of_other_tools())
        return None

    bucket.exports(FaultyStore(bucket.store, plan)).run(after(), "o")
    yield from [*found, bucket.of_other_tools()]


@pytest.mark.parametrize("form", FORMS)
def test_the_new_topic_is_equal_to_one_written_anew(form: str) -> None:
    bucket = begun(form)
    done = bucket.exports().run(after(), "o")
    assert bucket.of_other_tools() == written_anew(form)
    assert done.sum("records") == 4
    assert not bucket.objects(".logkeep/rewrite/")
    assert read_journal(bucket.store)[0].state is ExchangeState.IDLE  # type: ignore[index]
    document = read_document(DatasetTarget(bucket.store))
    assert document is not None
    assert {(n.topic, n.partition): (n.history, n.last) for n in document.logs} == {
        ("o", 0): (NEW_ID, 5), ("o", 1): (NEW_ID, -1), ("other", 0): (ID, 2)
    }  # fmt: skip
    assert bucket.exports().run(after()).logs == ()


@pytest.mark.parametrize("form", FORMS)
def test_killed_after_every_store_call(form: str) -> None:
    """And continued in turn by the same command, by a run without --rewrite, and by `verify`."""
    assert _killed_everywhere(form, lambda call: (AFTERWARDS[call % 3],)) > 60


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_killed_after_every_store_call_and_continued_in_every_way(form: str) -> None:
    calls = _killed_everywhere(form, lambda _: AFTERWARDS)
    print(f"{form}: --rewrite killed after {calls} of {calls} store calls, continued in 3 ways")


def _killed_everywhere(form: str, afterwards: Callable[[int], Sequence[str]]) -> int:
    whole, old = written_anew(form), begun(form).of_other_tools()
    states = set[str]()
    for call in itertools.count(1):
        for then in afterwards(call):
            bucket = begun(form)
            if not killed(bucket, call):
                assert states == {*ExchangeState}
                return call - 1
            states.add(_continued(bucket, then, whole, old, call))
    raise AssertionError


def _continued(bucket: Bucket, then: str, whole: Objects, old: Objects, call: int) -> ExchangeState:
    found = read_journal(bucket.store)
    state = found[0].state if found is not None else ExchangeState.IDLE
    exchanged = state is ExchangeState.EXCHANGING or _o(bucket.of_other_tools()) == _o(whole)
    if state is ExchangeState.EXCHANGING:
        for reads in (open_dataset, lambda store: open_existing(DatasetTarget(store))):
            with pytest.raises(Locked, match="new files replace the old ones"):
                reads(bucket.store)
    if then == AFTERWARDS[2]:
        settle(DatasetTarget(bucket.store))
        assert _o(bucket.of_other_tools()) == _o(whole if exchanged else old), f"killed at {call}"
    elif then == AFTERWARDS[0] or exchanged:
        bucket.exports().run(after(), *(["o"] if then == AFTERWARDS[0] else []))
        assert bucket.of_other_tools() == whole, f"killed at {call}"
    else:
        with pytest.raises(TargetUnsafe, match="another log than the one in the dataset"):
            bucket.exports().run(after())
        assert _o(bucket.of_other_tools()) == _o(old), f"killed at {call}"
        bucket.exports().run(after(), "o")
    _is_whole(bucket)
    return state


def _o(objects: Objects) -> Objects:
    return {name: data for name, data in objects.items() if _topic(name) == "o"}


def _is_whole(bucket: Bucket) -> None:
    """As `verify` says, and nothing is left."""
    target = DatasetTarget(bucket.store)
    settle(target)
    checked = list(read_back(target))
    document = read_document(target)
    assert document is not None
    assert not missing_records(document.logs, checked)
    assert not [f for each in checked for f in each.findings if each.topic == "o"]  # the other one may have been cut
    found = read_journal(bucket.store)
    assert found is None or found[0].state is ExchangeState.IDLE
    assert not bucket.objects(".logkeep/rewrite/")


@pytest.mark.parametrize("form", FORMS)
def test_another_reader_never_sees_old_and_new_records_of_a_partition(form: str) -> None:
    """An index is there only with all that it lists. Formats without one: the first files of one side."""
    old, new = _o(begun(form).of_other_tools()), _o(written_anew(form))
    kinds = set[str]()
    for objects in map(_o, seen(begun(form))):
        if form == "kafka-backup-v1":
            indexed = any("/index_partition_" in name for name in objects)
            assert not indexed or _all_of(objects, old) or _all_of(objects, new)
            kinds.add("indexed" if indexed else "none")
            continue
        kinds.add("old" if _begins(objects, old) else "new" if _begins(objects, new) else "mixed")
    assert kinds == ({"indexed", "none"} if form == "kafka-backup-v1" else {"old", "new"})


def _all_of(objects: Objects, whole: Objects) -> bool:
    """Every partition that is listed has all of its files, and none of the other side."""
    listed = {name[-3:] for name in objects if "/index_partition_" in name}
    files = {name: data for name, data in whole.items() if any(f"partition_{each}" in name for each in listed)}
    return {name: data for name, data in objects.items() if any(f"partition_{e}" in name for e in listed)} == files


def _begins(objects: Objects, whole: Objects) -> bool:
    names = sorted(whole)[: len(objects)]
    return objects == {name: whole[name] for name in names}


def test_removal_order() -> None:
    names = ["o/consumer_offsets_partition_000", "o/index_partition_000", "o/segment_partition_000_from_offset_0_index"]
    names += ["o/segment_partition_000_from_offset_0_records", "o/segment_partition_000_from_offset_5_records"]
    assert removal_order(names) == [names[1], names[2], names[4], names[3], names[0]]


def _journal(state: ExchangeState, **changes: object) -> bytes:
    """Of a run on another host."""
    owner = msgspec.structs.replace(this_process("f" * 16), host="elsewhere")
    document = ExchangeDocument(state=state, run="f" * 16, owner=owner, prefixes=("o/",), topics=("o",))
    return msgspec.structs.replace(document, **changes).encoded()


@pytest.mark.parametrize("state", [ExchangeState.WRITING, ExchangeState.REMOVING])
def test_a_run_of_another_host_is_taken_over_some_time_after_its_last_renewal(state: ExchangeState) -> None:
    bucket = begun(FORMS[0])
    whole = bucket.of_other_tools()
    DatasetTarget(bucket.store).put(JOURNAL, _journal(state))
    bucket.store.put_new(".logkeep/rewrite/" + "f" * 16 + "/o/index_partition_000", b"\x01")
    bucket.now += timedelta(seconds=TAKEN_OVER_AFTER_S - 1)
    with pytest.raises(Locked, match="on elsewhere writes o anew"):
        bucket.exports().run(before())
    open_dataset(bucket.store)  # the dataset itself is whole
    bucket.now += timedelta(seconds=2)
    assert bucket.exports().run(before()).logs == ()
    assert bucket.of_other_tools() == whole
    _is_whole(bucket)


def _overtaken(bucket: Bucket, act: Callable[[], None], operation: str, part: str) -> FaultyStore:
    """Another process acts right before the first such call of a run that has the journal."""
    waiting = [act]

    def plan(number: int, called: str, name: str) -> Fault | None:
        if waiting and called == operation and part in name:
            found = read_journal(bucket.store)
            if found is not None and found[0].state is not ExchangeState.IDLE:
                waiting.pop()()
        return None

    return FaultyStore(bucket.store, plan)


def _clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds since boot, as the test sets them."""
    now_s = [1000.0]
    monkeypatch.setattr("logkeep.kafka.datasets.bucket_journal._since_boot_s", lambda: now_s[0])
    return now_s


@pytest.mark.parametrize(("operation", "part"), [("list", "o/"), ("delete", "o/"), ("copy_new", "o/")])
def test_a_run_that_was_taken_over_ends_at_its_next_step(
    operation: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = _clock(monkeypatch)
    bucket = begun(FORMS[0])

    made = list[int]()

    def other() -> None:
        settle(DatasetTarget(bucket.store))
        now_s[0] += TAKEN_OVER_AFTER_S
        made.append(len(store.calls))

    store = _overtaken(bucket, other, operation, part)
    with pytest.raises(Locked):
        bucket.exports(store).run(after(), "o")
    late = [call for call in store.calls[made[0] :] if call.operation in {"delete", "copy_new"}]
    assert not late, "only the call that was under way when the other run took over"
    bucket.exports().run(after(), "o")
    assert bucket.of_other_tools() == written_anew(FORMS[0])


def test_what_was_written_anew_is_read_back_before_anything_is_touched() -> None:
    bucket = begun(FORMS[0])
    old = bucket.of_other_tools()

    def damage() -> None:
        (name,) = [n for n in bucket.objects(".logkeep/rewrite/") if n.endswith("_0000000002_records")]
        bucket.store.delete(name)
        bucket.store.put_new(name, b"\x01")

    with pytest.raises(Damaged, match="o/0, written anew, was read back"):
        bucket.exports(_damaging(bucket, damage)).run(after(), "o")
    assert _o(bucket.of_other_tools()) == _o(old)
    bucket.exports().run(after(), "o")
    assert bucket.of_other_tools() == written_anew(FORMS[0])


def _damaging(bucket: Bucket, damage: Callable[[], None]) -> FaultyStore:
    """After the last group file of the new topic is there."""
    done = list[str]()

    def plan(number: int, called: str, name: str) -> Fault | None:
        if called == "put_new" and "/o/consumer_offsets_partition_001" in name:
            done.append(name)
        elif done and done[-1]:
            done.append("")
            damage()
        return None

    return FaultyStore(bucket.store, plan)


def test_a_topic_that_another_run_has_continued_meanwhile_is_not_exchanged() -> None:
    bucket = begun("avro")
    longer = ListedSource(exportable_logs(exportable("other", 0, 0, 9, ID)), {DatasetLog("other", 0): rows(*range(9))})

    def other() -> None:
        bucket.store.delete(JOURNAL)  # it does not know the journal
        bucket.exports().run(longer)

    with pytest.raises(Locked):
        bucket.exports(_overtaken(bucket, other, "put_new", ".logkeep/rewrite/")).run(after(), "o")
    assert _o(bucket.of_other_tools()) == _o(begun("avro").of_other_tools())


@pytest.mark.parametrize(
    "journal",
    [
        b"{",
        b'{"type":"logkeep-exchange","version":1}',
        _journal(ExchangeState.EXCHANGING, prefixes=("",)),
        _journal(ExchangeState.EXCHANGING, prefixes=(".logkeep/",)),
        _journal(ExchangeState.EXCHANGING, prefixes=("../",)),
        _journal(ExchangeState.WRITING, run="a/b"),
    ],
    ids=("cut off", "without state", "the whole dataset", "our own folder", "above the dataset", "run with a slash"),
)
def test_a_journal_that_would_delete_something_else_is_refused(journal: bytes) -> None:
    bucket = begun("avro")
    DatasetTarget(bucket.store).put(JOURNAL, journal)
    whole = bucket.objects()
    for reads in (lambda: bucket.exports().run(before()), lambda: settle(DatasetTarget(bucket.store))):
        with pytest.raises(Damaged, match="no journal of an exchange"):
            reads()
    assert bucket.objects() == whole


@pytest.mark.parametrize("left", [0, 2])
def test_new_topics_that_are_not_whole_leave_the_old_ones(left: int) -> None:
    """A user deleted what lies below `.logkeep/rewrite/`, or a part of it."""
    call = itertools.count(1)
    while True:
        bucket = begun("avro")
        assert killed(bucket, next(call))
        found = read_journal(bucket.store)
        if found is not None and found[0].state is ExchangeState.EXCHANGING:
            break
    old, new = bucket.of_other_tools(), sorted(bucket.objects(f"{found[0].place}topics/"))
    assert found[0].objects == len(new) == 4
    for name in new[left:]:
        bucket.store.delete(name)
    with pytest.raises(Damaged, match="are missing") as error:
        bucket.exports().run(before())
    assert "bring the objects back" in error.value.remedy
    assert bucket.of_other_tools() == old

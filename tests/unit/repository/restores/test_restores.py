"""What is stored of a restore: ids, plans, producers, maps, receipts, and what a listing tells of them."""

import os
import threading
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import Damaged, Locked, ObjectMissing, RestoreFailed, StoreDenied
from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner, this_process
from logkeep.repository.restores import (
    NewRestore,
    RestoreState,
    RestoreVerdict,
    attempts,
    begin_restore,
    last_restores,
    list_restores,
    newest_producers,
    newest_receipt,
    note_resumed,
    owner_of,
    plan_body,
    put_aborted,
    put_map,
    put_producers,
    put_receipt,
    read_aborted,
    read_map,
    read_plan,
    read_producers,
    read_receipts,
    state_place,
    times_resumed,
)
from logkeep.repository.restores.documents import ProducersDocument, ReceiptDocument, RestoredGroup, sealed
from logkeep.repository.restores.stored import StoredRestore
from logkeep.store.base import ObjectMetadata, Store
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.retrying import RetryingStore, RetryLimits
from logkeep.store.wrapper import DelegatingStore
from tests.support.faults.plan import Fault, Scripted, lost_ack
from tests.support.faults.store import FaultyStore
from tests.support.scripted.restores import GROUP, NEW, NOW, PARTITION, PRODUCERS, REPOSITORY, TOPICS, clock_at, receipt

FIRST_ID = 20261116021500


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> SourceRef:
    store: Store = MemoryStore()
    if request.param == "local":
        store = LocalStore(tmp_path / "repo")
        store.create()
    return SourceRef(store, REPOSITORY, "shop")


def begun(place: SourceRef, new: NewRestore = NEW) -> RestoreId:
    return begin_restore(place, new, clock_at(NOW), random_token)


class OneTopic(msgspec.Struct, forbid_unknown_fields=True):
    topics: list[str]
    offsets: str


class TestPlan:
    def test_what_was_asked_is_read_back(self, place: SourceRef) -> None:
        restore_id = begun(place)
        plan = read_plan(place, restore_id)
        assert (plan.restore, plan.backup, plan.kind, plan.drill) == (FIRST_ID, NEW.backup, "kafka", False)
        assert (plan.target, plan.options, plan.who) == (NEW.target, NEW.options, "ops")
        assert plan.started == "2026-11-16T02:15:00.123Z"
        assert plan_body(plan, OneTopic) == OneTopic(["orders"], "preserve")
        with pytest.raises(Damaged, match="schema"):
            plan_body(plan, ReceiptDocument)

    def test_ids_only_grow(self, place: SourceRef) -> None:
        assert [begun(place) for _ in range(3)] == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
        earlier = begin_restore(place, NEW, clock_at(NOW - timedelta(days=400)), random_token)
        assert earlier == FIRST_ID + 3, "a clock that went back does not reuse ids"

    def test_an_id_whose_plan_is_lost_is_not_used_again(self, place: SourceRef) -> None:
        restore_id = begun(place)
        put_producers(place, restore_id, TOPICS, PRODUCERS, "run", after=0)
        place.store.delete(layout.restore_plan("shop", restore_id))
        assert begun(place) == restore_id + 1

    def test_a_race_gives_each_its_own_id(self, place: SourceRef) -> None:
        barrier, ids = threading.Barrier(6), list[int]()

        def begin() -> None:
            barrier.wait()
            ids.append(begun(place))

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ids) == list(range(FIRST_ID, FIRST_ID + 6))
        assert len({read_plan(place, RestoreId(i)).owner.run for i in ids}) == 6

    def test_a_lost_race_is_seen_by_the_store_and_not_by_the_listing(self) -> None:
        def blind(_number: int, operation: str, _name: str) -> Fault | None:
            return Fault(hide_newest=10) if operation == "list" else None

        place = SourceRef(FaultyStore(MemoryStore(), blind), REPOSITORY, "shop")
        assert [begun(place), begun(place)] == [FIRST_ID, FIRST_ID + 1]

    def test_a_lost_answer_does_not_make_two(self, place: SourceRef) -> None:
        faulty = FaultyStore(place.store, Scripted({2: lost_ack()}))
        shaky = SourceRef(
            RetryingStore(faulty, RetryLimits(first_wait_s=0.001, longest_wait_s=0.01)), REPOSITORY, "shop"
        )
        assert begun(shaky) == FIRST_ID
        assert [row.id for row in list_restores(place)] == [FIRST_ID]

    def test_a_body_that_is_no_json_is_not_stored(self, place: SourceRef) -> None:
        for body in (b"{", b"", b"1 2", b'{"a":\n1}'):
            with pytest.raises(RestoreFailed):
                begun(place, NewRestore(NEW.backup, "kafka", NEW.target, body))
        assert list(place.store.list("")) == []


class TestReadOnly:
    def test_the_remedy_names_the_state_directory(self, place: SourceRef) -> None:
        with pytest.raises(StoreDenied) as caught:
            begun(SourceRef(ReadOnlyStore(place.store), REPOSITORY, "shop"))
        assert "--state-dir" in caught.value.remedy

    def test_the_same_documents_in_a_directory(self, tmp_path: Path) -> None:
        read_only = SourceRef(ReadOnlyStore(MemoryStore()), REPOSITORY, "shop")
        local = state_place(read_only, tmp_path / "a" / "state", create=True)
        restore_id = begun(local)
        put_receipt(local, receipt(local, restore_id))
        assert (tmp_path / "a" / "state").stat().st_mode & 0o777 == 0o700
        again = state_place(read_only, tmp_path / "a" / "state")
        assert [(row.id, row.state) for row in list_restores(again)] == [(restore_id, RestoreState.PROVEN)]
        with pytest.raises(Damaged, match="another repository"):
            read_plan(SourceRef(again.store, "f" * 32, "shop"), restore_id)


class TestProducers:
    def test_all_and_the_newest(self, place: SourceRef) -> None:
        restore_id = begun(place)
        assert newest_producers(place, restore_id) is None
        assert put_producers(place, restore_id, TOPICS, PRODUCERS, "a", after=0).number == 1
        assert put_producers(place, restore_id, TOPICS, PRODUCERS[:1], "b", after=1).number == 2
        assert [d.producers for d in read_producers(place, restore_id)] == [PRODUCERS, PRODUCERS[:1]]
        newest = newest_producers(place, restore_id)
        assert newest is not None
        assert (newest.number, newest.run) == (2, "b")

    def test_who_is_second_writes_under_the_producers_of_the_first(self, place: SourceRef) -> None:
        restore_id = begun(place)
        first = put_producers(place, restore_id, TOPICS, PRODUCERS, "a", after=0)
        second = put_producers(place, restore_id, TOPICS, PRODUCERS[:1], "b", after=0)
        assert second == first
        assert read_producers(place, restore_id) == [first]

    def test_a_missing_list_is_damage(self, place: SourceRef) -> None:
        restore_id = begun(place)
        for number, run in enumerate("ab"):
            put_producers(place, restore_id, TOPICS, PRODUCERS, run, after=number)
        place.store.delete(layout.restore_producers("shop", restore_id, 1))
        with pytest.raises(Damaged, match="missing"):
            read_producers(place, restore_id)
        assert newest_producers(place, restore_id) is not None


class TestMap:
    def test_the_very_bytes(self, place: SourceRef) -> None:
        restore_id = begun(place)
        ref = put_map(place, restore_id, b"runs" * 1000, random_token())
        assert read_map(place, restore_id, ref) == b"runs" * 1000
        with pytest.raises(Damaged, match="missing"):
            read_map(place, RestoreId(restore_id + 1), ref)
        for wrong in ({"size": 3999}, {"size": 4001}, {"sha256": "0" * 64}):
            with pytest.raises(Damaged):
                read_map(place, restore_id, msgspec.structs.replace(ref, **wrong))

    def test_large_ones_are_streamed(self, place: SourceRef) -> None:
        restore_id, data = begun(place), bytes(range(256)) * 70_000
        seen = FaultyStore(place.store)
        ref = put_map(SourceRef(seen, REPOSITORY, "shop"), restore_id, data, random_token())
        assert [call.operation for call in seen.calls] == ["open_new", "write", "close"]
        assert read_map(place, restore_id, ref) == data


class TestReceipts:
    def test_a_second_proof_is_a_new_receipt_and_counts(self, place: SourceRef) -> None:
        restore_id = begun(place)
        assert newest_receipt(place, restore_id) is None
        put_receipt(place, receipt(place, restore_id, verdict=RestoreVerdict.FAILED))
        put_receipt(place, receipt(place, restore_id))
        assert [r.verdict for r in read_receipts(place, restore_id)] == ["failed", "proven"]
        newest = newest_receipt(place, restore_id)
        assert newest == msgspec.structs.replace(receipt(place, restore_id), number=2)
        assert [(row.state, row.receipts) for row in list_restores(place)] == [(RestoreState.PROVEN, 2)]

    def test_what_readers_would_refuse_is_not_written(self, place: SourceRef) -> None:
        restore_id = begun(place)
        spoiled = msgspec.structs.replace(
            receipt(place, restore_id), partitions=(msgspec.structs.replace(PARTITION, topic="../x"),)
        )
        with pytest.raises(RestoreFailed):
            put_receipt(place, spoiled)
        assert newest_receipt(place, restore_id) is None

    def test_100_000_partitions_with_the_longest_names_fit(self) -> None:
        longest = msgspec.structs.replace(
            PARTITION,
            source_topic="s" * 249,
            topic="t" * 249,
            source_partition=99_999,
            partition=99_999,
            records=2**62,
            bytes=2**62,
            end=2**62,
            archive_digest="lk1:" + "9" * 19 + ":" + "f" * 32 + ":" + "f" * 16 + ":" + "9" * 19,
            target_digest="lk1:" + "9" * 19 + ":" + "f" * 32 + ":" + "f" * 16 + ":" + "9" * 19,
        )
        group = msgspec.structs.replace(GROUP, group="g" * 60, topic="t" * 60, previous_metadata="m" * 60)
        size = 100_000 * _size(longest) + 300_000 * _size(group)
        assert size < ReceiptDocument.limit
        producer = msgspec.structs.replace(
            PRODUCERS[0], topic="t" * 249, partition=99_999, producer_id=2**62, position=2**62
        )
        assert 100_000 * _size(producer) < ProducersDocument.limit

    def test_too_much_is_said_before_it_is_stored(self, monkeypatch: pytest.MonkeyPatch, place: SourceRef) -> None:
        monkeypatch.setattr(ReceiptDocument, "limit", 1000)
        with pytest.raises(RestoreFailed, match="the limit is") as caught:
            sealed(receipt(place, FIRST_ID, partitions=(PARTITION,) * 100))
        assert "fewer topics" in caught.value.remedy


def _size(row: msgspec.Struct) -> int:
    return len(msgspec.json.encode(row)) + 1


class TestResume:
    def test_who_works_on_it_now(self, place: SourceRef) -> None:
        restore_id = begun(place)
        plan = read_plan(place, restore_id)
        assert owner_of(place, plan) == plan.owner
        owners = [note_resumed(place, restore_id, clock_at(NOW), random_token).owner for _ in range(2)]
        assert owner_of(place, plan) == owners[1] != owners[0]
        (row,) = list_restores(place)
        assert (row.state, row.owner) == (RestoreState.ONGOING, owners[1])

    def test_each_resume_has_its_own_number(self, place: SourceRef) -> None:
        """A run that another run has resumed since must see that, also when both began at the same moment."""
        stored = _stored(place)
        assert [stored.resume() for _ in range(3)] == [1, 2, 3]
        assert times_resumed(place, stored.id) == 3


class TestAnotherRun:
    """What fails is not reported as a failure of the restore where another run may have caused it."""

    def test_nobody_else_works_on_it(self, place: SourceRef) -> None:
        stored = _stored(place)
        note_resumed(place, stored.id, clock_at(NOW), random_token)
        put_receipt(place, receipt(place, stored.id, verdict=RestoreVerdict.FAILED))
        stored.refuse_beside_another_run()

    @pytest.mark.parametrize("later", [False, True], ids=["it came last", "this run came last"])
    def test_a_process_that_lives_works_on_it(
        self, place: SourceRef, monkeypatch: pytest.MonkeyPatch, later: bool
    ) -> None:
        stored, other = _stored(place), _owner(os.getppid())
        monkeypatch.setattr(attempts, "this_process", lambda _run: other)
        note_resumed(place, stored.id, clock_at(NOW), random_token)
        monkeypatch.undo()
        if later:
            note_resumed(place, stored.id, clock_at(NOW), random_token)
        with pytest.raises(Locked, match=f"process {os.getppid()} on .* is working on this restore"):
            stored.refuse_beside_another_run()

    def test_a_process_that_is_gone_does_not_count(self, place: SourceRef, monkeypatch: pytest.MonkeyPatch) -> None:
        stored, gone = _stored(place), msgspec.structs.replace(_owner(os.getppid()), born="1")
        monkeypatch.setattr(attempts, "this_process", lambda _run: gone)
        note_resumed(place, stored.id, clock_at(NOW), random_token)
        stored.refuse_beside_another_run()

    def test_another_run_has_restored_all_records(self, place: SourceRef) -> None:
        stored = _stored(place)
        there = receipt(place, stored.id, verdict=RestoreVerdict.FAILED)
        put_receipt(place, msgspec.structs.replace(there, records_there=True))
        with pytest.raises(Locked, match="another run has finished this restore"):
            stored.refuse_beside_another_run()


def _stored(place: SourceRef) -> StoredRestore:
    return StoredRestore.begin(place, NEW, clock_at(NOW), random_token)


def _owner(pid: int) -> Owner:
    """Of a process that lives."""
    born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return msgspec.structs.replace(this_process("other"), pid=pid, born=born)


class TestListing:
    def test_states(self, place: SourceRef) -> None:
        ids = [begun(place) for _ in range(10)]
        verdicts = [verdict for verdict in RestoreVerdict if verdict is not RestoreVerdict.CHANGED]
        for restore_id, verdict in zip(ids, [*verdicts, RestoreVerdict.PART], strict=False):
            put_receipt(place, receipt(place, restore_id, verdict=verdict))
        for restore_id in ids[7:9]:
            put_aborted(place, read_plan(place, restore_id), "changed my mind", clock_at(NOW), random_token)
        rows = list_restores(place)
        ended = ["proven", "unproven", "set", "failed", "aborted", "part", "stopped"]
        assert [row.state for row in rows] == [*ended, "aborted", "aborted", "ongoing"]
        assert [row.part for row in rows] == ["", "", "groups", "", "", *["subtree"] * 3, "", ""]
        aborted, ongoing = rows[8:]
        assert (aborted.backup, aborted.finished, aborted.duration_s) == (NEW.backup, NOW, None)
        assert (ongoing.backup, ongoing.started, ongoing.finished) == (NEW.backup, NOW, None)
        assert ongoing.owner is not None
        assert (ongoing.kind, aborted.kind) == (NEW.kind, "")

    def test_an_abort_counts_after_a_failed_receipt(self, place: SourceRef) -> None:
        restore_id = begun(place)
        put_receipt(place, receipt(place, restore_id, verdict=RestoreVerdict.FAILED))
        plan = read_plan(place, restore_id)
        for reason in ("first", "second"):
            put_aborted(place, plan, reason, clock_at(NOW), random_token)
        told = read_aborted(place, restore_id)
        assert told is not None
        assert told.reason == "first"
        assert [(row.state, row.receipts) for row in list_restores(place)] == [(RestoreState.ABORTED, 1)]

    def test_ended_restores_are_told_by_their_names_alone(self, place: SourceRef) -> None:
        for drill in (False, True):
            put_receipt(place, receipt(place, begun(place), drill=drill))
        seen = FaultyStore(place.store)
        rows = list_restores(SourceRef(seen, REPOSITORY, "shop"))
        assert [call.operation for call in seen.calls] == ["list"]
        assert [(r.drill, r.backup, r.duration_s) for r in rows] == [
            (False, NEW.backup, 12.222),
            (True, NEW.backup, 12.222),
        ]
        assert rows[0].finished is not None
        assert rows[0].finished - NOW == timedelta(seconds=12.222)

    def test_ongoing_plans_are_not_read_for_the_last_restore(self, place: SourceRef) -> None:
        put_receipt(place, receipt(place, begun(place)))
        begun(place)
        seen = FaultyStore(place.store)
        assert set(last_restores(SourceRef(seen, REPOSITORY, "shop"))) == {NEW.backup}
        assert [call.operation for call in seen.calls] == ["list"]

    def test_the_last_restore_of_each_backup(self, place: SourceRef) -> None:
        for backup, minute in ((1, 30), (2, 20), (1, 20), (2, 40)):
            finished = f"2026-11-16T02:{minute}:00.000Z"
            restore_id = begun(place)
            put_receipt(place, receipt(place, restore_id, backup=backup, finished=finished))
        later = "2026-11-16T02:50:00.000Z"
        for part in (RestoreVerdict.SET, RestoreVerdict.PART, RestoreVerdict.STOPPED):  # no restore of a backup
            put_receipt(place, receipt(place, begun(place), backup=1, verdict=part, finished=later))
        undone = begun(place)
        put_receipt(place, receipt(place, undone, backup=1, verdict=RestoreVerdict.PART, finished=later))
        put_aborted(place, read_plan(place, undone), "undone", clock_at(NOW), random_token)
        last = last_restores(place)
        assert {backup: row.id for backup, row in last.items()} == {1: FIRST_ID, 2: FIRST_ID + 3}

    def test_without_its_name_a_receipt_is_opened(self, place: SourceRef) -> None:
        restore_id = begun(place)
        put_receipt(place, receipt(place, restore_id))
        before = list_restores(place)
        (name,) = [i.name for i in place.store.list("") if "/ended." in i.name]
        place.store.delete(name)
        assert list_restores(place) == before

    def test_what_cannot_be_read_hides_no_other(self, place: SourceRef) -> None:
        broken, whole = begun(place), begun(place)
        put_receipt(place, receipt(place, whole))
        name = layout.restore_plan("shop", broken)
        place.store.delete(name)
        place.store.put_new(name, b"no plan")
        rows = list_restores(place)
        assert [(r.id, r.state, bool(r.trouble)) for r in rows] == [(broken, "ongoing", True), (whole, "proven", False)]

    def test_an_unknown_verdict_is_no_success(self, place: SourceRef) -> None:
        restore_id = begun(place)
        put_receipt(place, receipt(place, restore_id))
        (name,) = [i.name for i in place.store.list("") if "/ended." in i.name]
        data = place.store.get(name, 1 << 20)
        place.store.delete(name)
        place.store.put_new(name.replace(".proven.", ".splendid."), data)
        (row,) = list_restores(place)
        assert (row.state, "splendid" in row.trouble) == (RestoreState.FAILED, True)


class TestNames:
    ROOT = "sources/shop/restores/00000020261116021500/"

    @pytest.mark.parametrize(
        "leaf",
        [
            "plan.json",
            "aborted.json",
            "producers.000001.json",
            "receipt.999999.json",
            "resumed.000001.json",
            "map.0123456789abcdef.map",
            "ended.000001.00000020261116001348.drill.proven.20261116T021500123Z.20261116T021512345Z.12222.json",
        ],
    )
    def test_known_shapes(self, leaf: str) -> None:
        said = layout.restore_object("shop", self.ROOT + leaf)
        assert said is not None
        assert (said.restore, said.kind) == (FIRST_ID, leaf.partition(".")[0])
        assert not layout.collectable("shop", self.ROOT + leaf)
        assert layout.restore_object("other", self.ROOT + leaf) is None

    @pytest.mark.parametrize(
        "name",
        [
            "plan.json.bak",
            "x/plan.json",
            "producers.0000001.json",
            "receipt.000000.json",
            "receipt.1.json",
            "map.0123456789ABCDEF.map",
            "ended.000001.00000020261116001348.drill.proven.20261316T021500123Z.20261116T021512345Z.12222.json",
            "ended.000001.00000020261116001348.drill.proven.99991231T235959999Z.20261116T021512345Z.12222.json",
            "ended.000001.00000000000000000000.drill.proven.20261116T021500123Z.20261116T021512345Z.12222.json",
            "ended.000000.00000020261116001348.drill.proven.20261116T021500123Z.20261116T021512345Z.12222.json",
        ],
    )
    def test_others_are_nothing(self, name: str) -> None:
        assert layout.restore_object("shop", self.ROOT + name) is None

    def test_ids_out_of_range_are_nothing(self) -> None:
        for number in ("0" * 20, "9" * 20):
            assert layout.restore_object("shop", f"sources/shop/restores/{number}/plan.json") is None

    def test_numbers_run_out_with_an_error(self) -> None:
        with pytest.raises(ValueError, match="between"):
            layout.restore_receipt("shop", RestoreId(1), 1_000_000)


class Overtaken(DelegatingStore):
    """Somebody else puts the names in `lost` between our listing and our put."""

    lost: tuple[str, ...] = ()

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        if name in self.lost:
            self.inner.put_new(name, b"another's")
        self.inner.put_new(name, data)


def test_a_number_that_was_taken_meanwhile_is_left_alone() -> None:
    store = Overtaken(MemoryStore())
    place = SourceRef(store, REPOSITORY, "shop")
    restore_id = begun(place)
    store.lost = (layout.restore_receipt("shop", restore_id, 1),)
    assert put_receipt(place, receipt(place, restore_id)).number == 2
    assert [store.get(name, 100) for name in store.lost] == [b"another's"]


def test_no_restore_has_no_plan() -> None:
    with pytest.raises(ObjectMissing):
        read_plan(SourceRef(MemoryStore(), REPOSITORY, "shop"), RestoreId(1))


def test_a_group_may_have_had_no_position_before() -> None:
    assert RestoredGroup(group="g", topic="t", partition=0, detail="it is alive").offset is None

"""The coordinator and the completion of backups, with an application and a repository in memory."""

import contextlib
from datetime import timedelta
from io import BytesIO

import msgspec
import pytest

from logkeep.checkpoint.archive.copies import copy_request, put_copy, stored_copies
from logkeep.checkpoint.archive.log_names import snapshots_of
from logkeep.checkpoint.archive.partition_files import copy_snapshot
from logkeep.checkpoint.archive.record import ApplicationRecord, read_application
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.archive.take import TakenBackup, TakeOptions, mark, take
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.errors import BackupFailed, ClusterUnreachable, IllegalTransition, Locked, StoreUnreachable, UsageError
from logkeep.kinds import APPLICATION
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.repository.backups.content import PartReader, rows_of
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.source import read_manifest, view
from logkeep.repository.backups.states import Failed, Ongoing, State, StateName
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.parts import expected
from logkeep.repository.upkeep.live import live_objects
from logkeep.repository.upkeep.prune import delete, fail_ongoing, ongoing_ids
from logkeep.repository.verify.checks import HashUnit
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Scripted, error_before, lost_ack
from tests.support.faults.store import FaultyStore
from tests.support.scripted_application import ScriptedApplication, World


def _take(world: World, app: ScriptedApplication, wanted: int | None = None, **options: object) -> TakenBackup:
    wanted_id = BackupId(wanted) if wanted is not None else None
    chosen = TakeOptions(wanted_id, **options)  # type: ignore[arg-type]  # options by name
    return world.drain(take(world.place, app, chosen, world.clock, world.tokens))


def _state(world: World, backup_id: int) -> State:
    return view(world.place, world.clock.now, this_process("0" * 16)).state(BackupId(backup_id))


def _record(world: World, backup_id: int) -> ApplicationRecord:
    entry = read_chain(world.place).entry(BackupId(backup_id))
    assert entry is not None
    return read_application(world.place, read_manifest(world.place, entry))


def _world(partitions: int = 3) -> tuple[World, ScriptedApplication]:
    world = World()
    return world, ScriptedApplication(world, partitions)


def test_r1_r9_r16_a_backup_with_the_callers_id_has_every_partition() -> None:
    world, app = _world()
    assert _take(world, app, 7) == TakenBackup(7, joined=False, state=StateName.COMPLETED)
    record = _record(world, 7)
    assert [c.cut_end for c in record.copies] == [c.position + 1 for c in record.copies] == [4, 4, 4]
    assert sorted(app.sent) == [(0, 7), (1, 7), (2, 7)]


def test_the_second_backup_continues_the_first_and_shares_its_segments() -> None:
    world, app = _world()
    _take(world, app, 1)
    for partition in app.partitions:
        partition.work(5)
    _take(world, app, 2)
    first, second = _record(world, 1).copies[0], _record(world, 2).copies[0]
    assert (second.log_start, second.cut_end, second.snapshot_position) == (first.cut_end, 10, 7)
    assert read_chain(world.place).completed[-1].summary.segments == 6


@pytest.mark.parametrize("used", [1, 2, 5])
def test_r2_r10_an_id_that_is_not_larger_creates_nothing(used: int) -> None:
    world, app = _world()
    _take(world, app, 5)
    app.sent.clear()
    with pytest.raises(IllegalTransition):
        _take(world, app, used)
    assert app.sent == []
    assert _state(world, 4).name is StateName.DOES_NOT_EXIST


def test_r3_r20_the_same_id_by_a_second_coordinator_is_acknowledged_and_triggers_nothing() -> None:
    world, app = _world()
    app.copying = {0, 1}
    assert _take(world, app, 7, wait=False).state is StateName.ONGOING
    sent = len(app.sent)
    again = _take(world, app, 7, wait=False)
    assert again == TakenBackup(7, joined=True, state=StateName.ONGOING)
    assert len(app.sent) == sent
    world.drain(app.copy(2, 7))
    assert [e.id for e in read_chain(world.place).completed] == [7]


def test_r4_r17_a_take_is_acknowledged_when_every_partition_has_processed_its_create_and_before_completion() -> None:
    world, app = _world()
    app.copying, app.lost = set(), {1}
    steps = take(world.place, app, TakeOptions(BackupId(7), wait=False), world.clock, world.tokens)
    for step in steps:
        world.passed(step)
        assert len(app.answers(7)) < 3 or _state(world, 7).name is StateName.ONGOING
    assert len(app.answers(7)) == 3
    assert _state(world, 7).name is StateName.ONGOING


def test_r5_records_after_the_acknowledgement_are_not_in_the_backup() -> None:
    world, app = _world()
    app.copying = set()
    _take(world, app, 7, wait=False)
    ends = [partition.end for partition in app.partitions]
    for partition in app.partitions:
        partition.work(9)
        world.drain(app.copy(partition.number, 7))
    assert [copy.cut_end for copy in _record(world, 7).copies] == ends


def test_r6_r7_r40_r42_the_state_is_one_of_four() -> None:
    world, app = _world()
    app.copying = {0}
    assert _state(world, 7).name is StateName.DOES_NOT_EXIST
    _take(world, app, 7, wait=False)
    assert isinstance(_state(world, 7), Ongoing)
    world.drain(app.copy(1, 7))
    assert isinstance(_state(world, 7), Ongoing)
    world.drain(app.copy(2, 7))
    assert _state(world, 7).name is StateName.COMPLETED


def test_r8_an_ongoing_backup_fails_at_its_deadline_for_every_reader() -> None:
    world, app = _world()
    app.copying = {0, 2}
    _take(world, app, 7, wait=False, timeout=timedelta(minutes=1))
    world.clock.now += timedelta(minutes=1, seconds=31)
    derived = _state(world, 7)
    assert isinstance(derived, Failed)
    assert not derived.recorded
    assert derived.reason.startswith("partition 1: ")
    with pytest.raises(IllegalTransition):
        _take(world, app, 7)
    recorded = _state(world, 7)
    assert isinstance(recorded, Failed)
    assert recorded.recorded
    assert "partition 1" in recorded.reason


def test_a_whole_backup_is_not_completed_after_its_deadline() -> None:
    world, app = _world(1)
    app.copying = set()
    _take(world, app, 7, wait=False, timeout=timedelta(minutes=1))
    world.clock.now += timedelta(minutes=2)
    assert world.drain(app.copy(0, 7)).state is StateName.FAILED


def test_r11_nothing_is_deleted_while_a_backup_is_ongoing() -> None:
    world, app = _world()
    _take(world, app, 1)
    _take(world, app, 2)
    app.copying = set()
    _take(world, app, 3, wait=False)
    with writing(world.place, "delete", world.clock, world.tokens) as session, pytest.raises(Locked):
        delete(session, [1], "test")
    with writing(world.place, "delete", world.clock, world.tokens) as session:
        fail_ongoing(session, ongoing_ids(world.place, session.folded.last_id, world.clock.now))
    assert world.drain(app.copy(0, 3)).reason == "deleted before it was completed"
    with writing(world.place, "delete", world.clock, world.tokens) as session:
        delete(session, [1], "test")
    assert [e.id for e in read_chain(world.place).completed] == [2]


def test_objects_of_copies_that_have_no_receipt_yet_are_live() -> None:
    world, app = _world()
    app.copying = set()
    _take(world, app, 7, wait=False)
    steps = app.copy(0, 7)
    while next(steps) != "receipt":
        pass
    names = list(world.store.list("sources/shop/topics/"))
    live = live_objects(world.place, read_chain(world.place), (), world.clock.now)
    assert names
    assert all(live.holds(info) for info in names)


def test_r15_r18_any_coordinator_follows_a_backup_whose_first_one_died() -> None:
    world, app = _world()
    steps = take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens)
    while next(steps) != "create 1":
        pass
    del steps
    world.clock.now += timedelta(minutes=3)
    assert _take(world, app, 7) == TakenBackup(7, joined=True, state=StateName.COMPLETED)


def test_r19_a_lost_create_is_sent_again() -> None:
    world, app = _world()
    app.lost = {0, 2}
    assert _take(world, app, 7).state is StateName.COMPLETED
    assert sorted(app.sent) == [(0, 7), (0, 7), (1, 7), (2, 7), (2, 7)]


def test_a_partition_that_never_answers_is_named() -> None:
    world, app = _world()
    app.deaf = {1}
    with pytest.raises(BackupFailed, match="partition 1: it did not answer"):
        _take(world, app, 7)
    state = _state(world, 7)
    assert isinstance(state, Failed)
    assert state.recorded


def test_r39_two_leaders_of_a_partition_never_overwrite_one_another() -> None:
    world, app = _world(1)
    app.copying = set()
    _take(world, app, 7, wait=False)
    older, newer = app.copy(0, 7, term=1), app.copy(0, 7, term=2)
    while next(older) != "receipt":
        next(newer)
    assert world.drain(newer).state is world.drain(older).state is StateName.COMPLETED
    request = copy_request(world.place, 7)
    assert request is not None
    assert sorted(c.copy.term for c in stored_copies(world.place, request)) == [1, 2]


def test_r41_one_failed_partition_fails_the_backup_with_its_reason() -> None:
    world, app = _world()
    app.copying = {0}
    _take(world, app, 7, wait=False)
    assert world.drain(app.copy(1, 7, reason="the disk is full")).reason == "partition 1: the disk is full"
    late = world.drain(app.copy(2, 7))
    assert (late.state, _state(world, 7).name) == (StateName.FAILED, StateName.FAILED)


def test_a_receipt_of_a_failed_copy_is_enough_for_readers() -> None:
    world, app = _world()
    app.copying = set()
    _take(world, app, 7, wait=False)
    steps = app.copy(2, 7, reason="the disk is full")
    while next(steps) != "settle: read":
        pass
    state = _state(world, 7)
    assert isinstance(state, Failed)
    assert state.reason == "partition 2: the disk is full"


def test_one_backup_at_a_time_unless_it_is_superseded() -> None:
    world, app = _world()
    app.copying = set()
    _take(world, app, 7, wait=False)
    with pytest.raises(Locked, match="backup 7 is ongoing"):
        _take(world, app, 8)
    app.copying = None
    assert _take(world, app, 8, supersede=True).state is StateName.COMPLETED
    state = _state(world, 7)
    assert isinstance(state, Failed)
    assert "superseded" in state.reason


def test_an_application_that_is_down_or_archives_elsewhere_uses_no_id() -> None:
    world, app = _world()
    app.down = True
    with pytest.raises(ClusterUnreachable):
        _take(world, app, 7)
    app.down, app.repository = False, "other"
    app.repository = ""
    with pytest.raises(UsageError, match="started without a repository"):
        _take(world, app)
    with pytest.raises(UsageError, match="started without a repository"):
        world.drain(mark(world.place, app, None, timedelta(seconds=1), world.clock, world.tokens))
    app.repository = "other"
    with pytest.raises(UsageError, match="archives to repository other"):
        _take(world, app, 7)
    assert open_ids(world.place, 0) == []
    assert app.sent == []


def test_a_worker_with_another_store_fails_the_backup_at_once() -> None:
    world, app = _world()
    facts = app.facts()
    app.copying, app.repository = set(), "other"
    app.facts = lambda: facts  # type: ignore[method-assign]  # one worker differs from the one that was asked
    with pytest.raises(BackupFailed, match="partition 0: it archives to repository other"):
        _take(world, app, 7)


def test_a_partition_that_jumped_over_the_id_fails_it_at_once() -> None:
    world, app = _world()
    facts, app.partitions[2].latest = app.facts(), 9
    app.facts = lambda: facts  # type: ignore[method-assign]  # it jumps after it was asked
    with pytest.raises(BackupFailed, match="partition 2: it jumped over 7"):
        _take(world, app, 7)


def test_ids_never_repeat_after_a_restore() -> None:
    world, app = _world()
    _take(world, app, 20)
    _take(world, app, 30)
    restored = ScriptedApplication(world, history=1)
    with pytest.raises(IllegalTransition):
        _take(world, restored, 30)
    _take(world, restored, 31)
    assert _record(world, 31).history == 1
    assert _record(world, 31).copies[0].log_start == 0


def test_a_span_that_was_lost_before_it_was_archived_is_a_finding() -> None:
    world, app = _world(1)
    _take(world, app, 1)
    partition = app.partitions[0]
    partition.work(6)
    partition.start = partition.end
    partition.work(3)
    _take(world, app, 2)
    entry = read_chain(world.place).completed[-1]
    findings = read_manifest(world.place, entry).findings
    assert [f.code for f in findings] == ["log-lost"]
    assert entry.summary.warnings == 1


def test_a_marker_has_an_id_and_no_backup() -> None:
    world, app = _world()
    _take(world, app, 5)
    marked = world.drain(mark(world.place, app, BackupId(6), timedelta(minutes=1), world.clock, world.tokens))
    assert marked == 6
    assert _state(world, 6).name is StateName.DOES_NOT_EXIST
    for partition in app.partitions:
        partition.work()
    _take(world, app, 7)
    assert [c[0] for c in _record(world, 7).copies[0].checkpoints] == [6, 7]
    app.deaf = {2}
    with pytest.raises(BackupFailed, match="partition 2: it did not answer"):
        world.drain(mark(world.place, app, BackupId(8), timedelta(minutes=1), world.clock, world.tokens))


def test_a_copy_for_another_request_does_not_count() -> None:
    world, app = _world(1)
    app.copying = set()
    _take(world, app, 7, wait=False)
    request = copy_request(world.place, 7)
    assert request is not None
    begun = PartitionCopy(partition=0, term=1, history=0, nonce=request.nonce, outcome="failed")
    copy, segments = world.drain(app.copied(request, app.partitions[0], begun, 3, 4))
    for other in ({"nonce": "f" * 16}, {"history": 5}, {"partition": 1}):
        put_copy(world.place, 7, msgspec.structs.replace(copy, **other), segments, "r", world.tokens())
    assert world.drain(settle(world.place, 7, world.clock, world.tokens)).missing == (0,)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"snapshot_position": 3}, "its snapshot at 3 is not before the create at 3"),
        ({"log_start": 2}, "its log begins at 2, and it has no snapshot"),
        ({"log_start": 3, "snapshot_position": 1}, "its log begins at 3, and its snapshot ends at 1"),
        ({"log_start": 5}, "the create at 3 is not inside its log, 5 to 4"),
        ({"cut_end": 3}, "the create at 3 is not inside its log, 0 to 3"),
        ({"log_start": 1, "snapshot_position": 1}, "it wrote 0 to 4, and its log is 1 to 4"),
    ],
)
def test_a_receipt_that_contradicts_itself_fails_the_backup(wrong: dict[str, int], what: str) -> None:
    world, app, copy, segments = _copied()
    put_copy(world.place, 7, msgspec.structs.replace(copy, **wrong), segments, "r", world.tokens())
    settled = world.drain(settle(world.place, 7, world.clock, world.tokens))
    assert settled.reason == f"partition 0: the receipt of its copy contradicts itself: {what}"
    assert _take(world, app, 8).state is StateName.COMPLETED


def test_a_receipt_with_the_snapshot_of_another_position_fails_the_backup() -> None:
    world, _, copy, segments = _copied()
    other = snapshots_of("shop", 0, 0)
    written = world.drain(copy_snapshot(world.place, other, 1, 0, BytesIO(b"state"), world.tokens))
    named = msgspec.structs.replace(copy, snapshot_position=2)
    put_copy(world.place, 7, named, (*segments, written), "r", world.tokens())
    settled = world.drain(settle(world.place, 7, world.clock, world.tokens))
    assert settled.reason.endswith("it wrote a snapshot at 1, and names one at 2")


def _copied() -> tuple[World, ScriptedApplication, PartitionCopy, tuple[Segment, ...]]:
    """A backup that waits for the receipt of its only partition, and that receipt."""
    world, app = _world(1)
    app.copying = set()
    _take(world, app, 7, wait=False)
    app.copying = None
    request = copy_request(world.place, 7)
    assert request is not None
    begun = PartitionCopy(partition=0, term=1, history=0, nonce=request.nonce, outcome="failed")
    return world, app, *world.drain(app.copied(request, app.partitions[0], begun, 3, 4))


def _calls() -> int:
    world, app = _world(2)
    faulty = FaultyStore(world.store)
    world.store = faulty
    _take(world, app, 7)
    return len(faulty.calls)


@pytest.mark.parametrize("fault", [error_before(), lost_ack()], ids=["before", "after"])
def test_a_store_that_fails_at_any_call_burns_no_id_and_leaves_nothing_stuck(fault: object) -> None:
    """Whatever call fails: without a request the id is free, with one it is completed or failed in the end."""
    total = _calls()
    assert total > 50
    for number in range(1, total + 1):
        world, app = _world(2)
        inner = world.store
        world.store = FaultyStore(inner, Scripted({number: fault}))  # type: ignore[dict-item]
        with contextlib.suppress(StoreUnreachable, BackupFailed, Locked):
            _take(world, app, 7)
        world.store = inner
        world.clock.now += timedelta(minutes=20)
        ids = open_ids(world.place, read_chain(world.place).last_id)
        sent_without_request = app.sent and not ids and read_chain(world.place).last_id < 7
        assert not sent_without_request, number
        final = _take(world, app, 8)
        assert final.state is StateName.COMPLETED, number
        assert _state(world, 7).name in {StateName.COMPLETED, StateName.FAILED, StateName.DOES_NOT_EXIST}
        assert isinstance(inner, MemoryStore)


def test_a_coordinator_that_dies_at_any_step_leaves_nothing_stuck() -> None:
    steps = 0
    while True:
        world, app = _world(2)
        running = take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens)
        try:
            for _ in range(steps + 1):
                world.passed(next(running))
        except StopIteration:
            break
        running.close()
        world.clock.now += timedelta(minutes=20)
        assert _take(world, app, 8).state is StateName.COMPLETED
        assert _state(world, 7).name is not StateName.ONGOING
        steps += 1
    assert steps == 11


@pytest.mark.parametrize("second", [7, 8])
def test_two_coordinators_at_once(second: int) -> None:
    """At every step of the first the second runs whole: equal ids give one backup, other ids one after the other."""
    for at in range(11):
        world, app = _world(2)
        first = take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens)
        for _ in range(at + 1):
            world.passed(next(first))
        outcomes = []
        for run in (take(world.place, app, TakeOptions(BackupId(second)), world.clock, world.tokens), first):
            try:
                outcomes.append(world.drain(run).id)
            except (IllegalTransition, Locked, BackupFailed):
                continue
        completed = [e.id for e in read_chain(world.place).completed]
        assert completed
        assert len(completed) == len(set(completed))
        assert set(outcomes) == set(completed)
        if second == 7:
            assert completed == [7]


def test_verify_reads_logs_as_batches_and_snapshots_by_their_hashes() -> None:
    world, app = _world()
    for partition in app.partitions:
        partition.work(9)
    _take(world, app, 7)
    entry = read_chain(world.place).completed[-1]
    manifest = read_manifest(world.place, entry)
    rows = rows_of(PartReader(world.place), manifest, manifest.parts)
    wanted = [each for _, each in expected(rows, "shop")]
    assert {layout.is_log(each.name) for each in wanted} == {True, False}
    result = APPLICATION.read_task()(HashUnit(world.store, wanted), lambda _: None)
    assert (result.findings, result.objects) == ([], 6)
    assert isinstance(world.store, MemoryStore)
    for each in wanted:
        world.store.delete(each.name)
    damaged = APPLICATION.read_task()(HashUnit(world.store, wanted), lambda _: None)
    assert len(damaged.findings) == 6


def test_r10_a_receipt_that_fails_after_completion_is_no_failure_for_a_reader() -> None:
    """It is stored while the reader is between its reads; what was decided before it counts."""
    world, app = _world(2)
    app.copying = {0}
    _take(world, app, 10, wait=False)

    def complete_then_fail(_number: int, operation: str, name: str) -> None:
        if operation == "list" and "journal" in name and not app.copying:
            app.copying = {1}
            assert world.drain(app.copy(1, 10)).state == "completed"
            world.drain(app.copy(0, 10, term=2, reason="the store does not answer"))

    place = SourceRef(FaultyStore(world.store, complete_then_fail), world.repository, "shop")
    app.copying = set()
    assert view(place, world.clock(), this_process("reader")).state(BackupId(10)).name == "completed"
    assert app.copying == {1}


def test_a_backup_whose_copies_are_all_there_is_completed_although_an_answer_is_missing() -> None:
    """A leader may die, or wait for a long time, between its copy and its answer."""
    world, app = _world(2)
    app.silent = {1}
    assert _take(world, app, 10).state is StateName.COMPLETED
    assert _state(world, 10).name is StateName.COMPLETED


def _mark(world: World, app: ScriptedApplication, wanted: int | None = None) -> int:
    chosen = None if wanted is None else BackupId(wanted)
    return world.drain(mark(world.place, app, chosen, timedelta(minutes=1), world.clock, world.tokens))


@pytest.mark.parametrize("used", [6, 7])
def test_an_id_up_to_that_of_a_checkpoint_without_a_copy_stores_no_request(used: int) -> None:
    world, app = _world()
    _mark(world, app, 7)
    app.sent.clear()
    for attempt in (_mark, _take):
        with pytest.raises(IllegalTransition, match="not larger than the latest checkpoint of the application, 7"):
            attempt(world, app, used)
    assert (app.sent, open_ids(world.place, 0)) == ([], [])


def test_ids_that_logkeep_chooses_are_behind_those_of_checkpoints() -> None:
    world, app = _world()
    _mark(world, app, 999_999_999_999_999)
    assert _mark(world, app) == 10**15
    assert _take(world, app) == TakenBackup(10**15 + 1, joined=False, state=StateName.COMPLETED)


def test_a_checkpoint_without_a_copy_that_another_coordinator_took_meanwhile_is_refused() -> None:
    world, app = _world()
    facts = app.facts()
    _mark(world, app, 7)
    app.facts = lambda: facts  # type: ignore[method-assign]  # it was asked before
    with pytest.raises(IllegalTransition, match="partition 0: the id was used"):
        _mark(world, app, 7)


def test_an_id_that_became_a_checkpoint_without_a_copy_meanwhile_fails_at_once_as_a_backup() -> None:
    world, app = _world()
    facts = app.facts()
    _mark(world, app, 7)
    app.facts = lambda: facts  # type: ignore[method-assign]  # it was asked before
    with pytest.raises(BackupFailed, match="checkpoint without a copy"):
        _take(world, app, 7, wait=False)
    assert _take(world, app, 8).state is StateName.COMPLETED

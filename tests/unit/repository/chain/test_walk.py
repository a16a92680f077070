"""A repository from its first backup to its last: backup, incremental, fail, resume, delete, hold, prune, repair."""

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import CommitConflict, Damaged, IllegalTransition, LeaseLost, Locked, UsageError
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.repository.access import create_repository
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.holds import reader_holds, reading
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source, view
from logkeep.repository.backups.states import Completed, Failed, Ongoing
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import HoldAction, ReleaseAction
from logkeep.repository.chain.commits import SourceRef, append, read_chain, read_whole_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.lease import DEFAULT_TTL, acquire, free, read_lease
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect, plan_garbage
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import lost_ack
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up, expected, log_of, restored


class Lab:
    """A memory repository with a clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)
        self._numbers = count(1)
        self.store = MemoryStore(lambda: self.now)
        repository = create_repository(self.store, StoreFacts(True, True, False), self.now, self.token)
        self.place: SourceRef = repository.place("prod")

    def clock(self) -> datetime:
        return self.now

    def token(self) -> str:
        return f"{next(self._numbers):016x}"

    def back_up(self, ends: dict[int, int], **options: object) -> int:
        self.now += timedelta(minutes=1)
        entry = back_up(self.place, ends, InlineEngine(), self.clock, self.token, **options)  # type: ignore[arg-type]  # forwarded as is
        return entry.id

    def hold_often(self, times: int) -> None:
        """As many commits, which are cheaper than backups; every 64th is a checkpoint."""
        with writing(self.place, "hold", self.clock, self.token) as session:
            for _ in range(times):
                session.commit(HoldAction(session.folded.completed[0].id, "again"))

    def names(self) -> set[str]:
        return {i.name for i in self.store.list("")}


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_backups_build_on_each_other_and_read_back_exactly(lab: Lab) -> None:
    ends = [{0: 9, 1: 5}, {0: 20, 1: 5}, {0: 23, 1: 17, 2: 3}]
    ids = [lab.back_up(e) for e in ends]
    assert ids == sorted(ids)
    for backup_id, wanted in zip(ids, ends, strict=True):
        assert restored(lab.place, backup_id) == expected(wanted)


def test_an_idle_backup_adds_no_data(lab: Lab) -> None:
    lab.back_up({0: 9})
    before = {n for n in lab.names() if "/topics/" in n or "/parts/" in n}
    lab.back_up({0: 9})
    assert {n for n in lab.names() if "/topics/" in n or "/parts/" in n} == before


def test_ids_only_grow(lab: Lab) -> None:
    lab.back_up({0: 1}, wanted=BackupId(70000000000000))
    with pytest.raises(IllegalTransition, match="not larger"):
        lab.back_up({0: 2}, wanted=BackupId(5))
    assert lab.back_up({0: 2}) == 70000000000001


def test_a_reader_derives_a_lost_owner_and_writes_nothing(lab: Lab) -> None:
    here = this_process("reader")
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(lab.place, "scripted", {}, lab.now))
        assert isinstance(view(lab.place, lab.now, here).state(ongoing.id), Ongoing)
    before = lab.names()
    state = view(lab.place, lab.now, here).state(ongoing.id)
    assert isinstance(state, Failed)
    assert not state.recorded
    assert lab.names() == before


def test_the_next_backup_records_what_was_left_behind_as_failed(lab: Lab) -> None:
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        left = begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
    backup_id = lab.back_up({0: 9})
    states = view(lab.place, lab.now, this_process("reader")).states()
    assert [type(s) for s in states] == [Failed, Completed]
    assert [s.id for s in states] == [left.id, backup_id]
    assert isinstance(states[0], Failed)
    assert states[0].recorded


def test_only_one_run_holds_the_lease(lab: Lab) -> None:
    with (
        writing(lab.place, "backup", lab.clock, lab.token),
        pytest.raises(Locked, match="backup by process"),
        writing(lab.place, "prune", lab.clock, lab.token),
    ):
        pass


def test_a_writer_whose_lease_was_taken_over_cannot_commit(lab: Lab) -> None:
    lab.back_up({0: 4})
    with writing(lab.place, "backup", lab.clock, lab.token) as sleeper:
        ongoing = begin(sleeper, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
        lab.now += timedelta(hours=1)
        other = lab.back_up({0: 8})
        with pytest.raises(LeaseLost):
            ongoing.fail("too late")
    assert [e.id for e in read_chain(lab.place).completed][-1] == other


def test_a_lease_that_is_not_renewed_is_acquired_although_the_clock_of_its_holder_is_ahead(lab: Lab) -> None:
    """Its lifetime is 300 seconds, and a third of it is added."""
    holder = acquire(lab.place, this_process("a"), "backup", lambda: lab.now + timedelta(hours=1), DEFAULT_TTL)
    seconds = [0.0]

    def is_refused(at_s: float) -> bool:
        seconds[0] = at_s
        try:
            acquire(lab.place, this_process("b"), "prune", lab.clock, DEFAULT_TTL, lambda: seconds[0])
        except Locked:
            return True
        return False

    assert is_refused(1000)
    assert is_refused(1400)
    holder.work_on(BackupId(1))
    assert is_refused(1401), "its holder lives"
    assert is_refused(1801)
    assert not is_refused(1802)
    with pytest.raises(LeaseLost):
        holder.confirm()


@pytest.mark.parametrize("step", [timedelta(0), timedelta(minutes=-6), timedelta(hours=-1), timedelta(hours=1)])
def test_a_holder_that_renews_for_hours_keeps_its_lease_although_its_clock_is_set(lab: Lab, step: timedelta) -> None:
    """The clock is set once, after 200 seconds. The other process asks again and again; its own clock is right."""
    seconds, began = [0.0], lab.now

    def own_clock() -> datetime:
        return began + timedelta(seconds=seconds[0]) + (step if seconds[0] > 200 else timedelta(0))

    holder = acquire(lab.place, this_process("a"), "backup", own_clock, DEFAULT_TTL, lambda: seconds[0])
    for second in range(0, 2 * 3600, 50):
        seconds[0] = float(second)
        if second % 100 == 0:
            assert holder.renew(), f"lost after {second} s"
        lab.now = began + timedelta(seconds=seconds[0])
        with pytest.raises(Locked):
            acquire(lab.place, this_process("b"), "prune", lab.clock, DEFAULT_TTL, lambda: seconds[0])
    holder.confirm()


def test_a_clock_that_was_ahead_for_a_while_keeps_the_lease_no_longer(lab: Lab) -> None:
    """A day ahead during one renewal. The holder is killed at 600 seconds."""
    seconds, began = [0.0], lab.now

    def own_clock() -> datetime:
        return began + timedelta(seconds=seconds[0]) + timedelta(days=1 if seconds[0] == 100 else 0)

    holder = acquire(lab.place, this_process("a"), "backup", own_clock, DEFAULT_TTL, lambda: seconds[0])
    for second in range(100, 700, 100):
        seconds[0] = float(second)
        assert holder.renew()
    lab.now = began + timedelta(minutes=14)
    with pytest.raises(Locked):
        acquire(lab.place, this_process("b"), "prune", lab.clock, DEFAULT_TTL, lambda: 840.0)
    lab.now = began + timedelta(minutes=18, seconds=1)
    acquire(lab.place, this_process("b"), "prune", lab.clock, DEFAULT_TTL, lambda: 1081.0)


def test_a_renewal_keeps_the_head_that_a_pin_stored(lab: Lab) -> None:
    backup = lab.back_up({0: 4})
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        pinned = pin(lab.place, HoldAction(backup, "audit"), lab.clock, lab.token)
        assert session.lease.renew()
        found = read_lease(lab.place)
        assert found is not None
        assert found[0].head.generation == pinned.generation


def test_a_renewal_whose_answer_was_lost_does_not_cost_the_lease(lab: Lab) -> None:
    """The store has a later expiry than we know of: that is our own doing, not another run."""
    lost: set[str] = set()
    faulty = FaultyStore(lab.store, lambda _number, operation, _name: lost_ack() if operation in lost else None)
    place = SourceRef(faulty, lab.place.repository, "prod")
    with writing(place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(place, "scripted", {"id": "s-1"}, lab.now))
        for _ in range(2):
            lab.now += timedelta(minutes=1)
            lost.add("replace")
            assert session.lease.renew()
            lost.clear()
        assert session.lease.renew()
        lost.add("replace")
        assert session.lease.renew()
        lost.clear()
        ongoing.fail("the source went away")
    assert [f.id for f in read_chain(lab.place).failed] == [ongoing.id]


def test_a_lease_that_was_taken_away_is_not_ours_although_it_bears_our_name(lab: Lab) -> None:
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        found = read_lease(lab.place)
        assert found is not None
        free(lab.place, *found)
        with pytest.raises(LeaseLost):
            session.lease.confirm()


def test_a_writer_that_slept_while_the_chain_was_folded_fails_visibly(lab: Lab) -> None:
    for end in range(1, 6):
        lab.back_up({0: end})
    slept = read_chain(lab.place)
    lab.hold_often(70)
    assert any("/checkpoints/" in n for n in lab.names())
    with pytest.raises(CommitConflict):
        append(lab.place, slept, HoldAction(slept.completed[0].id, "late"), run="x", nonce="y", now=lab.now)


def test_checkpoints_tell_the_same_story_as_the_chain(lab: Lab) -> None:
    for end in range(1, 6):
        lab.back_up({0: end})
    lab.hold_often(70)
    lab.back_up({0: 9})
    assert any("/checkpoints/" in n for n in lab.names())
    assert read_chain(lab.place) == read_whole_chain(lab.place)


def test_a_pin_needs_no_lease_and_does_not_cost_a_running_backup_its_commit(lab: Lab) -> None:
    first = lab.back_up({0: 4})
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
        pin(lab.place, HoldAction(first, "audit"), lab.clock, lab.token)
        ongoing.fail("the source went away")
    folded = read_chain(lab.place)
    assert folded.entry(first) is not None
    assert folded.completed[0].hold == "audit"
    assert [f.id for f in folded.failed] == [ongoing.id]
    pin(lab.place, ReleaseAction(first), lab.clock, lab.token)
    assert read_chain(lab.place).completed[0].hold is None


def swept(lab: Lab, hours: float = 0) -> int:
    lab.now += timedelta(hours=hours)
    with writing(lab.place, "gc", lab.clock, lab.token) as session:
        return collect(session, GarbageRules()).deleted


def test_garbage_goes_in_two_phases_and_nothing_live_is_touched(lab: Lab) -> None:
    ids = [lab.back_up({0: 4 * n, 1: 2}) for n in (1, 2, 3)]
    with writing(lab.place, "delete", lab.clock, lab.token) as session:
        delete(session, ids[:1], "test")
        delete(session, ids[2:], "test")
    assert swept(lab, hours=1) == 0, "too young to be marked"
    assert swept(lab, hours=24) == 0, "marked, not yet swept"
    assert swept(lab, hours=3) == 0, "the mark is too young"
    assert swept(lab, hours=2) > 0
    assert restored(lab.place, ids[1]) == expected({0: 8, 1: 2})
    assert not any(layout.padded(8) in n for n in lab.names() if "/topics/" in n), "only the third backup had it"
    lab.back_up({0: 16, 1: 9})
    assert restored(lab.place, read_chain(lab.place).completed[-1].id) == expected({0: 16, 1: 9})


def test_a_reader_keeps_a_backup_that_is_deleted_under_it(lab: Lab) -> None:
    ids = [lab.back_up({0: 4}), lab.back_up({0: 8})]
    owner = this_process("reader")

    def needed() -> set[str]:
        return {n for n in lab.names() if "/topics/" in n or "/parts/" in n or "/manifest." in n}

    whole = needed()
    with reading(lab.place, BackupId(ids[1]), owner, "restore", lab.token) as entry:
        assert entry.id == ids[1]
        with writing(lab.place, "delete", lab.clock, lab.token) as session:
            delete(session, [ids[1]], "test")
        hold = reader_holds(lab.place)[0]
        for _ in range(3):
            lab.now += timedelta(hours=30)
            info = lab.store.head(hold.name)
            lab.store.replace(hold.name, lab.store.get(hold.name, 1 << 20), info.version)  # the reader renews
            swept(lab)
            assert needed() == whole
    swept(lab, hours=30)
    swept(lab, hours=30)
    assert needed() < whole
    assert restored(lab.place, ids[0]) == expected({0: 4})


def test_a_first_backup_longer_than_the_garbage_age_loses_nothing(lab: Lab) -> None:
    """Its lease ran out, gc came by twice, then it goes on: it must not commit what gc has deleted."""
    with writing(lab.place, "backup", lab.clock, lab.token) as sleeper:
        facts = ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now)
        ongoing = begin(sleeper, facts)
        lab.now += timedelta(hours=30)
        assert swept(lab) == 0
        assert swept(lab, hours=30) == 0
        with pytest.raises(LeaseLost):
            ongoing.fail("gone on too late")
    assert lab.back_up({0: 9}, resumed=True) == ongoing.id
    assert restored(lab.place, ongoing.id) == expected({0: 9})


def test_a_failed_backups_segments_are_adopted_by_the_next(lab: Lab) -> None:
    class StopAfterCopy(RuntimeError):
        pass

    class Engine(InlineEngine):
        def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
            results = super().map(task, units, result, label=label, weight=weight)
            if label == "copy":
                raise StopAfterCopy
            return results

    with pytest.raises(StopAfterCopy):
        back_up(lab.place, {0: 9}, Engine(), lab.clock, lab.token)
    data = {n for n in lab.names() if "/topics/" in n}
    assert len(data) == 3
    backup_id = lab.back_up({0: 9})
    assert {n for n in lab.names() if "/topics/" in n} == data, "copied again what was already there"
    assert restored(lab.place, backup_id) == expected({0: 9})


def test_what_a_mark_names_is_never_adopted(lab: Lab) -> None:
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
    with writing(lab.place, "gc", lab.clock, lab.token) as session:
        plan = plan_garbage(session, GarbageRules(age=timedelta(0), interval=timedelta(0)))
    assert plan.to_mark == (), "the journal of an open backup is live"


def test_the_end_of_the_chain_is_guarded(lab: Lab) -> None:
    lab.back_up({0: 4})
    lab.back_up({0: 8})
    lab.store.delete(layout.commit("prod", read_chain(lab.place).generation))
    with pytest.raises(Damaged, match="was committed before"):
        lab.back_up({0: 12})
    assert view(lab.place, lab.now, this_process("reader")).warnings


def test_a_pin_does_not_paper_over_removed_commits(lab: Lab) -> None:
    """Pins need no lease; three of them would have made the chain longer than the head that the lease remembers."""
    first = lab.back_up({0: 4})
    lab.back_up({0: 8})
    lab.store.delete(layout.commit("prod", read_chain(lab.place).generation))
    with pytest.raises(Damaged, match="was committed before"):
        pin(lab.place, HoldAction(first, "audit"), lab.clock, lab.token)


def test_a_range_in_which_nothing_is_left_needs_no_object(lab: Lab) -> None:
    with writing(lab.place, "backup", lab.clock, lab.token) as session:
        ongoing = begin(session, ensure_source(lab.place, "scripted", {"id": "s-1"}, lab.now))
        nothing = hashlib.sha256(b"").hexdigest()
        claim = Segment(
            log=log_of(0),
            start=0,
            end=9,
            first=0,
            token=lab.token(),
            has_object=False,
            records=0,
            stored_bytes=0,
            plain_bytes=0,
            base_time_ms=-1,
            max_time_ms=-1,
            sha256=nothing,
            plain_sha256=nothing,
        )
        entry = ongoing.complete(FinishedRun(cut=[LogCut(log_of(0), 0, 9)], new=[claim]))
    assert read_chain(lab.place).entry(entry.id) == entry


def test_a_hole_in_the_chain_is_damage(lab: Lab) -> None:
    for end in (4, 8, 12):
        lab.back_up({0: end})
    lab.store.delete(layout.commit("prod", 2))
    with pytest.raises(Damaged, match="generation 2 is missing"):
        read_chain(lab.place)


def test_another_system_is_refused(lab: Lab) -> None:
    lab.back_up({0: 4})
    with pytest.raises(UsageError, match="holds backups of scripted"):
        ensure_source(lab.place, "scripted", {"id": "s-2"}, lab.now)

"""Trimmed backups in a repository: kills at every store call, holds, readers, repair, fencing, and what is refused."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import CommitConflict, FormatTooNew, UsageError
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token
from logkeep.repository.access import create_repository
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.backups.source import read_manifest, read_trimmed_cuts
from logkeep.repository.backups.trim_floors import TrimmedCut, trim_findings, with_floors
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import Commit, HoldAction, TrimAction, TrimmedBackup, TrimmedTopic
from logkeep.repository.chain.commits import Link, SourceRef, checkpoints, open_commit, read_chain, read_whole_chain
from logkeep.repository.chain.format import TRIMMED_BACKUPS, StoreFacts, check_features, open_format
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.trims import Trim, TrimmedAway, joined
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.live import live_objects
from logkeep.repository.upkeep.repair import repair
from logkeep.repository.upkeep.trim import commit_trim, measure_trim
from logkeep.repository.verify.run import Verifier
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.property.repository_machine import Crash, DiesAt
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import back_up, expected, log_of, restored

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ALWAYS = GarbageRules(timedelta(0), timedelta(0))
ENDS = ({0: 9, 1: 5}, {0: 16, 1: 9}, {0: 20, 1: 9})
FLOORS = {log_of(0): 12, log_of(1): 4}


class Repository:
    """Three backups; the source's log starts are 13 and 4 when the last one is taken."""

    def __init__(self, store: Store | None = None) -> None:
        self.now, numbers = NOW, count(1)
        self.token: Callable[[], str] = (lambda: f"{next(numbers):016x}") if store is None else random_token
        self.store = store or MemoryStore(lambda: self.now)
        made = create_repository(self.store, StoreFacts(True, True, False), NOW, self.token)
        self.place = made.place("prod")
        self.ids = [self.back_up(ends) for ends in ENDS[:2]]
        self.ids.append(self.back_up(ENDS[2], {0: 13, 1: 4}))

    def clock(self) -> datetime:
        return self.now

    def back_up(self, ends: dict[int, int], starts: dict[int, int] | None = None) -> int:
        self.now += timedelta(hours=1)
        return back_up(self.place, ends, InlineEngine(), self.clock, self.token, starts=starts).id

    def trim(self, place: SourceRef | None = None, protected: tuple[int, ...] = ()) -> None:
        with writing(place or self.place, "prune", self.clock, self.token) as session:
            measured = measure_trim(session.place, session.folded, self.ids[-1], FLOORS)
            commit_trim(session, measured, protected, "test")

    def collect(self, place: SourceRef | None = None) -> None:
        with writing(place or self.place, "gc", self.clock, self.token) as session:
            collect(session, ALWAYS)

    def copied(self) -> MemoryStore:
        """The store as it is, for one more try."""
        assert isinstance(self.store, MemoryStore)
        other = MemoryStore(self.clock)
        for info in self.store.list(""):
            other.put_new(info.name, self.store.get(info.name, 1 << 20))
        return other

    def contents(self) -> list[dict[int, bytes]]:
        return [restored(self.place, backup_id) for backup_id in self.ids]


WHOLE = [expected(ENDS[0]), expected(ENDS[1]), expected(ENDS[2], {0: 13, 1: 4})]
TRIMMED = [expected(ENDS[0], {0: 9, 1: 4}), expected(ENDS[1], {0: 12, 1: 4}), WHOLE[2]]


def test_older_backups_begin_later_and_the_newest_stays() -> None:
    made = Repository()
    assert made.contents() == WHOLE
    made.trim()
    assert made.contents() == TRIMMED
    folded = read_chain(made.place)
    assert folded == read_whole_chain(made.place)
    first = folded.completed[0]
    assert first.trimmed == TrimmedAway(4, 13, 13 * 16)
    assert folded.completed[2].trims is msgspec.UNSET
    assert read_trimmed_cuts(made.place, first) == [TrimmedCut(log_of(0), 0, 9), TrimmedCut(log_of(1), 0, 4)]
    (finding,) = trim_findings(read_trimmed_cuts(made.place, first))
    assert "partition 0 begins at 9 instead of 0, partition 1 begins at 4 instead of 0" in finding.what


def test_what_no_backup_needs_any_more_is_deleted() -> None:
    made = Repository()
    before = {info.name for info in made.store.list("sources/prod/topics/")}
    made.trim()
    made.collect()
    left = {info.name for info in made.store.list("sources/prod/topics/")}
    assert made.contents() == TRIMMED
    assert len(before) - len(left) == 4  # [0, 4), [4, 8), [8, 9) of 0 and [0, 4) of 1; [9, 13) and [13, 16) stay


def test_a_kill_at_any_store_call_leaves_every_backup_as_before_or_as_after() -> None:
    """At every call of the trim, and at some of the collection after it."""
    whole, made = Repository(), Repository()
    outcomes: list[str | None] = ["whole"]
    call = 1
    while outcomes[-1] is not None:
        made.store, made.now = whole.copied(), whole.now
        made.place = SourceRef(made.store, whole.place.repository, "prod")
        outcomes.append(_killed(made, call))
        call += 1 if outcomes[-1] == "whole" else 15
    assert set(outcomes[:-1]) == {"whole", "trimmed"}
    assert outcomes[:-1] == sorted(outcomes[:-1], key=lambda outcome: outcome == "trimmed")
    assert call > 50


def _killed(made: Repository, call: int) -> str | None:
    """How the backups read after the kill; None if there was none."""
    place, killed = SourceRef(FaultyStore(made.store, DiesAt(call)), made.place.repository, "prod"), False
    try:
        made.trim(place)
        made.collect(place)
    except Crash:
        killed = True
    after, folded = made.contents(), read_chain(made.place)
    assert after in (WHOLE, TRIMMED), call
    assert folded == read_whole_chain(made.place)
    if folded.trims:
        assert TRIMMED_BACKUPS in open_format(made.store).document.required_features
    return None if not killed else "whole" if after == WHOLE else "trimmed"


def test_the_same_in_a_directory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "whole")
    store.create()
    made = Repository(store)
    outcomes = []
    for call in range(2, 60, 6):
        shutil.copytree(tmp_path / "whole", tmp_path / str(call))
        made.store, made.now = LocalStore(tmp_path / str(call)), datetime.now(UTC)
        made.place = SourceRef(made.store, made.place.repository, "prod")
        outcomes.append(_killed(made, call))
    assert {"whole", "trimmed"} <= set(outcomes)


def test_a_trimmed_backup_is_not_damaged() -> None:
    made = Repository()
    made.trim()
    made.collect()
    verifier = Verifier(made.place, InlineEngine(), this_process("verify"), made.clock, made.token)
    for backup_id in made.ids:
        found = verifier.verify(BackupId(backup_id), "data")
        assert found.document.verdict == GOOD
        assert {f.code for f in found.findings} == (set() if backup_id == made.ids[2] else {"trimmed"})


def test_a_reader_that_began_before_the_trim_keeps_its_objects() -> None:
    made = Repository()
    folded = read_chain(made.place)
    made.trim()
    entry = folded.entry(made.ids[0])
    assert entry is not None
    manifest = read_manifest(made.place, entry)
    needed = {s.token for s in rows_of(PartReader(made.place), manifest, served_parts(manifest, folded)).to_segments()}
    after = read_chain(made.place)
    assert needed <= live_objects(made.place, after, [BackupId(made.ids[0])], made.now).tokens
    assert not needed <= live_objects(made.place, after, [], made.now).tokens


def test_protected_and_newest_backups_are_refused() -> None:
    made = Repository()
    with pytest.raises(UsageError, match="must stay as it is"):
        made.trim(protected=(made.ids[0],))
    with writing(made.place, "prune", made.clock, made.token) as session:
        measured = measure_trim(made.place, session.folded, made.ids[-1], {log_of(0): 14})
        with pytest.raises(UsageError, match="newest good backup has positions"):
            commit_trim(session, measured, (), "test")
    assert made.contents() == WHOLE


def test_a_hold_between_plan_and_commit_wins() -> None:
    made = Repository()
    with writing(made.place, "prune", made.clock, made.token) as session:
        measured = measure_trim(made.place, session.folded, made.ids[-1], FLOORS)
        pin(made.place, HoldAction(made.ids[0], "court"), made.clock, made.token)
        with pytest.raises(CommitConflict):
            commit_trim(session, measured, (), "test")
    assert made.contents() == WHOLE


def test_the_next_backup_continues_a_trimmed_one() -> None:
    """The newest was deleted: the base is a trimmed backup, whose older objects are gone."""
    made = Repository()
    made.trim()
    with writing(made.place, "delete", made.clock, made.token) as session:
        from logkeep.repository.upkeep.prune import delete  # noqa: PLC0415

        delete(session, [made.ids[2]], "test")
    made.collect()
    newest = made.back_up({0: 21, 1: 10}, {0: 13, 1: 4})
    assert restored(made.place, newest) == expected({0: 21, 1: 10}, {0: 13, 1: 4})
    with pytest.raises(Exception, match="no segment holds positions"):
        made.back_up({0: 22, 1: 10}, {0: 2, 1: 4})


def test_a_checkpoint_keeps_the_trims() -> None:
    made = Repository()
    made.trim()
    with writing(made.place, "gc", made.clock, made.token) as session:
        session.fence("test")
    assert checkpoints(made.place)
    assert read_chain(made.place) == read_whole_chain(made.place)
    assert made.contents() == TRIMMED


def test_a_trim_survives_lost_commits_around_it() -> None:
    """The commit before it is lost for good: the trim is replayed, also for a backup that is found by its manifest."""
    made = Repository()
    made.trim()
    made.collect()
    name = layout.commit("prod", 3)  # of the third backup, before the trim
    made.store.delete(name)
    made.now += timedelta(hours=1)
    repair(made.place, made.clock, made.token, DEFAULT_TTL, accept_loss=True, dry_run=False)
    assert made.contents() == TRIMMED
    head = read_chain(made.place)
    assert head == read_whole_chain(made.place)
    made.collect()
    assert made.contents() == TRIMMED


def test_a_lost_trim_leaves_backups_whole_while_their_objects_are_there() -> None:
    made = Repository()
    made.trim()
    made.store.delete(layout.commit("prod", read_chain(made.place).generation))
    made.now += timedelta(hours=1)
    repair(made.place, made.clock, made.token, DEFAULT_TTL, accept_loss=True, dry_run=False)
    assert made.contents() == WHOLE


def test_an_earlier_release_refuses_the_repository_and_the_commit() -> None:
    made = Repository()
    made.trim()
    with pytest.raises(FormatTooNew, match="trimmed-backups"):
        check_features(open_format(made.store).document, known=frozenset({"packed-records", "zstd-frames"}))
    name = layout.commit("prod", read_chain(made.place).generation)
    commit = open_commit(made.place, Link(name, made.store.get(name, Commit.limit)))
    assert commit.version == 2
    assert isinstance(commit.action, TrimAction)


def test_floors_that_a_later_trim_reaches_are_forgotten() -> None:
    one, two = (TrimmedTopic(log_of(0).collection, "t", "h", pairs) for pairs in (((0, 5), (1, 9)), ((0, 7), (1, 8))))
    assert joined([Trim(10, (one,))], TrimAction(20, (two,), (), "")) == [
        Trim(10, (msgspec.structs.replace(one, below=((1, 9),)),)),
        Trim(20, (two,)),
    ]
    assert joined([Trim(30, (one,))], TrimAction(20, (two,), (), "")) == [Trim(30, (one,)), Trim(20, (two,))]


def test_gaps_below_the_new_start_are_no_gaps_any_more() -> None:
    made = Repository()
    entry = read_chain(made.place).completed[0]
    gaps = tuple(KnownGap(log_of(0), start, end, "gone") for start, end in ((0, 2), (3, 6), (7, 8)))
    manifest = msgspec.structs.replace(read_manifest(made.place, entry), gaps=gaps)
    found = with_floors(manifest, {log_of(0): 4})
    assert [(g.start, g.end) for g in found.gaps] == [(4, 6), (7, 8)]
    assert with_floors(manifest, {log_of(0): 99}).cut[0].start == 9
    assert with_floors(manifest, {}) is manifest


def test_the_bytes_of_a_trim_commit() -> None:
    """Kept for ever."""
    action = TrimAction(
        3,
        (TrimmedTopic(log_of(0).collection, "orders", "a" * 32, ((0, 5), (2, 9))),),
        (TrimmedBackup(1, 2, 30, 4000),),
        "retention of the source",
    )
    assert msgspec.json.encode(action) == (
        b'{"kind":"trim","before":3,"topics":[{"collection":"topics","name":"orders",'
        b'"history":"' + b"a" * 32 + b'","below":[[0,5],[2,9]]}],'
        b'"backups":[{"id":1,"segments":2,"records":30,"stored_bytes":4000}],"reason":"retention of the source"}'
    )

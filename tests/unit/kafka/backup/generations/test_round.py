"""Catch-ups in runs over a topic made by hand: when they begin and end, what is read back, what becomes active."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import BackupFailed, FormatTooNew, UsageError
from logkeep.kafka.backup.generations.listing import cancel, plan_cancel
from logkeep.kafka.backup.generations.plan import GenerationRule, due_by_age, new_catch_up
from logkeep.kafka.backup.generations.round import GenerationRound, commit_generations, oldest_logs
from logkeep.kafka.backup.plan import Plan, next_history, used_numbers
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.kafka.record.history_names import history_number
from logkeep.kafka.topic_selection import topic_filter
from logkeep.repository.backups.catch_ups import catch_up_receipts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import GenerationsAction
from logkeep.repository.chain.commits import checkpoints, read_chain, read_whole_chain
from logkeep.repository.chain.format import GENERATIONS, check_features, open_format
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.upkeep.repair import repair
from logkeep.store.memory import MemoryStore
from tests.support.kafka import generation_cycle
from tests.support.kafka.cluster_values import topic
from tests.support.kafka.generation_cycle import SHARE, TOPIC, Cycle

START = datetime(2026, 11, 15, tzinfo=UTC)


def _made(kind: type[Cycle] = Cycle) -> Cycle:
    clock: list[Cycle] = []
    made = kind(MemoryStore(lambda: clock[0].now if clock else START))
    clock.append(made)
    made.back_up()
    made.cleaned = True
    return made


def _renewed(made: Cycle, rounds: int = 5) -> Cycle:
    made.begin_new()
    for _ in range(rounds):
        made.end += 2
        made.back_up()
    return made


def test_the_active_generation_goes_on_until_one_backup_switches_all_partitions() -> None:
    made = _made()
    made.begin_new()
    seen = list[int]()
    for _ in range(5):
        made.end += 2
        entry = made.back_up()
        cut = read_manifest(made.place, entry).cut
        assert {c.end for c in cut} == {made.end}, "every round reaches the end"
        seen.append(made.active_number())
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == 1
    made.check()
    assert not read_chain(made.place).catch_ups


def test_a_generation_begins_by_age_and_its_age_counts_from_there() -> None:
    made, rule = Cycle(MemoryStore(lambda: START)), GenerationRule(timedelta(days=30), 1 << 30)
    made.back_up(rule=rule)
    made.cleaned = True
    made.now += timedelta(days=29)
    made.back_up(rule=rule)
    assert made.active_number() == 0
    made.now += timedelta(days=2)
    made.back_up(rule=rule)
    assert made.active_number() == 1, "a small topic needs no other round"
    made.now += timedelta(days=29)
    made.back_up(rule=rule)
    assert made.active_number() == 1
    made.now += timedelta(days=2)
    made.back_up(rule=rule)
    assert made.active_number() == 2
    made.check()


def test_the_age_of_an_older_archive_is_that_of_its_oldest_backup() -> None:
    made = _made()
    made.now += timedelta(days=40)
    made.back_up(rule=GenerationRule(timedelta(days=30), 1 << 30))
    assert made.active_number() == 1


@dataclass
class _Spoils(Cycle):
    """The store changes a byte of what is written: of the first share, or of the end that a switch copies."""

    tail: bool = False
    left: int = 1

    def copy(self, session: Writing, plan: Plan, backup: int, catch_up: str = "") -> list[CopyResult]:
        results = super().copy(session, plan, backup, catch_up)
        new = [s for r in results for s in r.segments if history_number(s.log.history) and s.has_object]
        if new and self.left and bool(catch_up) is not self.tail:
            self.left -= 1
            name = layout.segment("prod", new[0])
            data = self.store.get(name, 1 << 20)
            self.store.delete(name)
            self.store.put_new(name, data[:-1] + bytes([data[-1] ^ 1]))
        return results


def test_a_damaged_share_is_copied_again() -> None:
    made = _renewed(_made(_Spoils), 7)
    assert made.left == 0  # type: ignore[attr-defined]
    assert made.active_number() == 1
    made.check()


def test_a_damaged_share_of_a_topic_that_does_not_grow_is_copied_again() -> None:
    """Under the same name of its unit: the receipt of the damaged one may be listed first."""
    for spoiled in (1, 2):
        made = _made(_Spoils)
        made.left = spoiled  # type: ignore[attr-defined]
        made.begin_new()
        for _ in range(8):
            made.back_up()
        assert made.active_number() == 1
        made.check()


def test_a_truncation_that_the_copy_finds_ends_the_catch_up_in_the_same_run() -> None:
    """The other partition has lost its end five times before: the catch-up has the next number after that."""
    made = _made()
    with made.session() as session:
        logs = [c.log for c in read_manifest(made.place, session.folded.completed[-1]).cut]
        often = [logs[0], msgspec.structs.replace(logs[1], history=f"{logs[1].history}-5")]
        new = new_catch_up(session.folded, logs[0].name, often, made.token(), "asked for")
        commit_generations(session, GenerationsAction(begun=(new,)))
        assert new.number == 6
        after = next_history(logs[0].name, logs[0].history, used_numbers(session.folded))
        histories = {0: after, 1: often[1].history}
        reached = {TopicPartition(c.name, c.partition): ArchivedReach(histories[c.partition], 9, 1) for c in logs}
        found = generation_cycle.facts_at(made.end)
        share = GenerationRound(session, SHARE).share(found, reached, Plan((), (), (), ()), _never, _no_engine)
        assert (share.what, share.findings) == (None, ())
    assert not read_chain(made.place).catch_ups


def _never(*_: object) -> list[CopyResult]:
    raise AssertionError("nothing is copied of a catch-up that has ended")


def _no_engine(_: int) -> InlineEngine:
    return InlineEngine()


def test_a_catch_up_whose_object_is_lost_ends_and_backups_go_on() -> None:
    made = _made()
    made.begin_new()
    made.end += 2
    made.back_up()
    (open_one,) = read_chain(made.place).catch_ups or ()
    copied = [s for r in catch_up_receipts(made.place, open_one) for s in r.segments if s.has_object]
    made.store.delete(layout.segment("prod", copied[0]))
    for _ in range(6):
        made.end += 2
        made.back_up()
    assert made.active_number() == 0
    assert not read_chain(made.place).catch_ups
    made.check()


def test_a_damaged_end_fails_the_run_and_the_old_generation_stays_active() -> None:
    made = _made(_Spoils)
    made.tail = True  # type: ignore[attr-defined]
    with pytest.raises(BackupFailed, match="cannot be read back"):
        _renewed(made)
    assert made.active_number() == 0
    made.check()
    made.back_up()
    assert made.active_number() == 1, "the next run copies the damaged object again"
    made.check()


def test_a_partition_that_was_added_meanwhile_switches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _renewed(_made(), 1)
    monkeypatch.setattr(generation_cycle, "PARTITIONS", 3)
    more = topic("accounts", leaders=(1,) * 3)
    monkeypatch.setattr(generation_cycle, "TOPIC", more)
    for _ in range(5):
        made.end += 2
        entry = made.back_up()
    assert {(c.log.partition, history_number(c.log.history)) for c in read_manifest(made.place, entry).cut} == {
        (p, 1) for p in range(3)
    }


def test_what_an_interrupted_switch_copied_counts_only_for_a_switch() -> None:
    """Its receipts are in the journal of the backup; without the rest of the generation they mean nothing."""
    made = _made(_Spoils)
    made.tail = True  # type: ignore[attr-defined]
    with pytest.raises(BackupFailed):
        _renewed(made)
    made.end += 40
    made.back_up(rule=replace(SHARE, share_bytes=1))
    numbers = {history_number(c.log.history) for c in read_manifest(made.place, _newest(made)).cut}
    assert len(numbers) == 1
    made.check()


def _newest(made: Cycle):  # type: ignore[no-untyped-def]
    return read_chain(made.place).completed[-1]


def test_the_feature_is_required_before_the_first_receipt() -> None:
    made = _made()
    made.begin_new()
    document = open_format(made.store).document
    assert GENERATIONS in document.required_features
    with pytest.raises(FormatTooNew, match="generations"):
        check_features(document, known=frozenset({"packed-records", "buried-offsets", "deletion-times"}))


def test_a_checkpoint_keeps_catch_ups() -> None:
    made = _made()
    made.begin_new()
    with made.session() as session:
        session.fence("test")
    folded = read_chain(made.place)
    assert folded == read_whole_chain(made.place)
    assert folded.catch_ups
    name = checkpoints(made.place)[-1][1]
    assert b'"version":2' in made.store.get(name, 1 << 20)


@pytest.mark.parametrize("lost", ["begun", "switched"])
def test_lost_commits_lose_no_backup(lost: str) -> None:
    """Of a backup that switched, or of the commit before it: the manifest has all of the new generation."""
    made = _renewed(_made())
    ids = [e.id for e in read_chain(made.place).completed]
    generations = _generation_of(made, begun=lost == "begun")
    made.store.delete(layout.commit("prod", generations))
    made.now += timedelta(hours=1)
    repair(made.place, made.time, made.token, DEFAULT_TTL, accept_loss=True, dry_run=False)
    assert [e.id for e in read_chain(made.place).completed] == ids
    made.check()
    made.end += 2
    made.back_up()
    made.check()
    assert not read_chain(made.place).catch_ups, "one that has become active without its commit ends"
    assert made.active_number() == 1


def _generation_of(made: Cycle, *, begun: bool) -> int:
    kind = b'"kind":"generations"' if begun else b'"switched":'
    for info in made.store.list(layout.commits("prod")):
        if kind in made.store.get(info.name, 1 << 20):
            placed = layout.placed(info.name)
            assert placed is not None
            return placed.number
    raise AssertionError(kind)


@pytest.mark.parametrize("step", ["copied", "verified"])
def test_a_receipt_that_cannot_be_read_frees_nothing_and_its_unit_is_repeated(step: str) -> None:
    made = _renewed(_made(), 2)
    copied = made.objects()
    for info in list(made.store.list(layout.catch_up_root("prod"))):
        if f"/{step}/" in info.name:
            made.store.delete(info.name)
            made.store.put_new(info.name, b"spoiled")
    made.prune_to(9)
    assert made.objects() == copied, "what an unreadable receipt names is not known, so everything stays"
    for _ in range(5):
        made.end += 2
        made.back_up()
    assert made.active_number() == 1
    made.check()
    made.prune_to(1)
    assert made.objects() == made.needed()


def test_a_cancelled_catch_up_leaves_the_active_generation_and_becomes_garbage() -> None:
    made = _made()
    made.begin_new()
    made.end += 2
    made.back_up()
    copied = made.objects()
    everything = topic_filter((), (), internal=False)
    with pytest.raises(UsageError, match="no catch-up of a topic matches other") as refused:
        plan_cancel(read_chain(made.place), ("other",), topic_filter(("other",), (), internal=False))
    assert "accounts" in refused.value.remedy
    with made.session() as session:
        assert [c.topic for c in cancel(session, (".*",), everything)] == ["accounts"]
    assert not read_chain(made.place).catch_ups
    made.end += 2
    made.back_up()
    made.check()
    assert made.active_number() == 0
    made.now += timedelta(hours=1)
    made.prune_to(1)
    assert made.objects() == made.needed() < copied | made.objects()


def test_a_dry_run_names_the_topics_that_are_due() -> None:
    """Also where no run has recorded their age yet: a topic is as old as the oldest backup that has it."""
    made, found = _made(), generation_cycle.facts_at(20)
    folded, length = read_chain(made.place), timedelta(days=30)
    reached = {TopicPartition(TOPIC.name, 0): ArchivedReach(TOPIC.id.hex, 20, 0)}
    oldest = oldest_logs(made.place, folded)

    def due(days: int) -> list[str]:
        return due_by_age(folded, found, oldest, reached, length, made.now + timedelta(days=days))

    assert (due(29), due(31)) == ([], ["accounts"])
    assert due_by_age(folded, found, (), reached, length, made.now + timedelta(days=31)) == [], "age not known"
    made.begin_new()
    folded = read_chain(made.place)
    assert due(31) == [], "under way"

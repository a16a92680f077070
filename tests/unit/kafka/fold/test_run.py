"""A fold of a whole source: one commit per log with its proof, or nothing replaced and the reason."""

import pickle
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, FormatTooNew, StoreFull, UsageError
from logkeep.formats.compaction.barriers import Barriers
from logkeep.formats.compaction.thin_batches import thinned
from logkeep.kafka.fold import plan, rewrite, run
from logkeep.kafka.fold.plan import ALREADY, FoldOptions
from logkeep.kafka.fold.run import LogFolding
from logkeep.kafka.fold.units import FoldUnit
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.kafka.merge import optimizing
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.record.contents import KafkaReport
from logkeep.kafka.restore.plan.folded_points import refuse_folded_points
from logkeep.kafka.verify.records import check_records
from logkeep.kinds import KAFKA
from logkeep.model.findings import Severity
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.folds import folded_over
from logkeep.repository.backups.holds import reading
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import format as format_object
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import Commit, HoldAction, ReplaceAction
from logkeep.repository.chain.commits import SourceRef, open_commit, read_chain, read_links
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.format import FOLDED_LOGS, StoreFacts, open_format
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.parts import log_totals
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import repair
from logkeep.repository.verify.run import Verifier
from logkeep.store.memory import MemoryStore
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.slow_records import Slow, batch_of

_AT_ONCE = GarbageRules(age=timedelta(0), interval=timedelta(0))


@pytest.fixture
def place() -> SourceRef:
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    return create_repository(MemoryStore(), facts, utc_now(), random_token).place("prod")


@pytest.fixture
def source(place: SourceRef) -> CompactedSource:
    """Three backups of two partitions: overwritten, deleted, transactional and unkeyed records."""
    made = CompactedSource(place, partitions=2)
    for number in range(3):
        for partition in (0, 1):
            for key in range(6):
                made.write([(f"k{key}".encode(), f"{number}.{n}".encode()) for n in range(4)], partition)
            made.write([(b"gone", None if number == 1 else b"there"), (b"empty", b""), (None, b"unkeyed")], partition)
            made.transaction([(b"k1", b"aborted"), (b"t", b"x")], 7, False, partition)
            made.transaction([(b"t", b"%d" % number)], 8, True, partition)
            made.write([(b"last", b"%d" % number)], partition)
        made.back_up()
    return made


def assert_good(source: CompactedSource) -> None:
    verifier = Verifier(source.place, InlineEngine(), this_process("verify"), utc_now, random_token, check_logs)
    for entry in read_chain(source.place).completed:
        verified = verifier.verify(BackupId(entry.id), "data")
        assert verified.document.verdict == GOOD, verified.findings


def proofs(place: SourceRef) -> list[ReplaceAction]:
    commits = [open_commit(place, link) for link in read_links(place, 0)]
    return [c.action for c in commits if isinstance(c.action, ReplaceAction) and c.action.fold]


def test_every_kept_backup_restores_as_before_and_old_objects_can_go(source: CompactedSource) -> None:
    before = source.all_latest()
    results = source.fold()
    assert [(r.log.partition, r.committed) for r in results] == [(0, True), (1, True)]
    assert source.all_latest() == before
    sizes = [(r.outcome.before.records, r.outcome.after.records) for r in results]  # type: ignore[union-attr]
    assert all(after < old / 2 for old, after in sizes)
    with writing(source.place, "gc", utc_now, random_token) as session:
        collect(session, _AT_ONCE)
        collect(session, _AT_ONCE)
    assert source.all_latest() == before
    assert_good(source)


def test_one_commit_for_each_log_with_its_proof(source: CompactedSource) -> None:
    source.fold()
    found = proofs(source.place)
    kept = [entry.id for entry in read_chain(source.place).completed]
    assert len(found) == 2
    for action in found:
        assert action.fold
        assert [cut.id for cut in action.fold.cuts] == kept
        assert [cut.records for cut in action.fold.cuts] == [11, 12, 13]
        assert len({cut.digest for cut in action.fold.cuts}) == 3
        assert action.fold.records_after < action.fold.records_before
        assert action.fold.digest_before.startswith("lk1:")
        assert action.fold.digest_before != action.fold.digest_after


def test_only_the_newest_backup_kept_folds_further(source: CompactedSource) -> None:
    source.fold()
    first, second, newest = (entry.id for entry in read_chain(source.place).completed)
    records = sum(len(b.records) for b in source.batches(newest))
    with writing(source.place, "delete", utc_now, random_token) as session:
        delete(session, [first, second], "test")
    before = source.all_latest()
    assert all(r.committed for r in source.fold())
    assert source.all_latest() == before
    assert sum(len(b.records) for b in source.batches(newest)) < records
    assert [r.reason for r in source.fold()] == [ALREADY, ALREADY]


def test_a_held_backup_counts_as_kept(source: CompactedSource) -> None:
    first = read_chain(source.place).completed[0].id
    pin(source.place, HoldAction(first, "audit"), utc_now, random_token)
    before = source.latest(first)
    source.fold()
    assert source.latest(first) == before


def test_a_new_backup_continues_a_folded_log(source: CompactedSource) -> None:
    source.fold()
    source.write([(b"k0", b"new"), (b"k9", b"new")])
    source.write([(b"k0", b"newer")])
    newest = source.back_up()
    assert source.values(newest)[b"k0"] == b"newer"
    before = source.all_latest()
    assert [r.committed for r in source.fold()] == [True, False]
    assert source.all_latest() == before
    assert_good(source)


def test_earlier_releases_end_at_the_feature_and_at_the_commit(
    source: CompactedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that starts reads the feature, one that is running reads the chain."""
    source.fold()
    assert FOLDED_LOGS in open_format(source.place.store).document.required_features
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        assert FOLDED_LOGS.encode() in source.place.store.get(name, 1 << 20)
    monkeypatch.setattr(format_object, "KNOWN_FEATURES", frozenset({"zstd-frames"}))
    monkeypatch.setattr(Commit, "newest", 1)
    with pytest.raises(FormatTooNew):
        read_chain(source.place)
    with pytest.raises(FormatTooNew):
        format_object.check_features(open_format(source.place.store).document, frozenset())


def test_a_damaged_object_is_named_and_nothing_is_replaced(source: CompactedSource) -> None:
    names = [i.name for i in source.place.store.list("") if i.name.endswith(".log") and "partition=0" in i.name]
    data = bytearray(source.place.store.get(names[1], 1 << 20))
    data[100] ^= 1
    source.place.store.replace(names[1], bytes(data), source.place.store.head(names[1]).version)
    results = source.fold()
    assert [(bool(r.problem), r.where, r.committed) for r in results] == [(True, names[1], False), (False, "", True)]
    assert len(proofs(source.place)) == 1


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"include": ("nothing",)}, "no archived topic matches nothing"),
        ({"include": ("(",)}, "is not a pattern"),
    ],
)
def test_a_bad_selection_is_refused(source: CompactedSource, wish: dict[str, tuple[str, ...]], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        source.fold(**wish)


def test_a_topic_that_was_not_compacted_in_one_kept_backup_is_not_folded(source: CompactedSource) -> None:
    source.configs = {"cleanup.policy": "delete"}
    source.write([(b"k", b"v")])
    newest = source.back_up()
    assert {r.reason for r in source.fold()} == {f"the topic was not compacted in backup {newest}"}
    with pytest.raises(UsageError, match="cannot be folded"):
        source.fold(include=("state",))
    assert not proofs(source.place)


def test_transactions_without_proven_deletions_are_left_alone(source: CompactedSource) -> None:
    source.proven = False
    source.write([(b"k", b"v")])
    source.back_up()
    assert {r.reason for r in source.fold()} == {"it has transactions, and its deletions are not proven"}


def test_a_dry_run_writes_nothing(source: CompactedSource) -> None:
    before = [(i.name, i.version) for i in source.place.store.list("")]
    found = source.folding().prepare(FoldOptions()).foreseen()
    assert [(r.log.partition, r.planned is not None) for r in found] == [(0, True), (1, True)]
    assert [(i.name, i.version) for i in source.place.store.list("")] == before


@pytest.mark.parametrize("another", [False, True])
def test_a_prepared_fold_is_planned_again_only_after_another_commit(
    source: CompactedSource, monkeypatch: pytest.MonkeyPatch, another: bool
) -> None:
    """The user confirms what was planned before the lease is taken: a backup may come in between."""
    read, plans = run.read_kept, list[int]()

    def counted(place: SourceRef, folded: Folded) -> list[plan.KeptBackup]:
        plans.append(folded.generation)
        return read(place, folded)

    monkeypatch.setattr(run, "read_kept", counted)
    prepared = source.folding().prepare(FoldOptions())
    if another:
        source.write([(b"k1", b"later")])
        source.back_up()
    before = source.all_latest()
    assert all(r.committed for r in source.folding().run(FoldOptions(), lambda _: InlineEngine(), prepared))
    assert len(plans) == 1 + another
    assert [len(proof.fold.cuts) for proof in proofs(source.place) if proof.fold] == [3 + another] * 2
    assert source.all_latest() == before


def test_the_proof_is_taken_from_the_store(source: CompactedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewrite that loses a record is noticed by what was read back, and nothing is replaced."""
    honest = thinned

    def lossy(buffer: object, batches: object, chosen: object, kept: object) -> bytes:
        keep = kept.copy()  # type: ignore[attr-defined]
        keep[keep.nonzero()[0][:1]] = False
        return honest(buffer, batches, chosen, keep)  # type: ignore[arg-type]

    monkeypatch.setattr(rewrite, "thinned", lossy)
    names = {i.name for i in source.place.store.list("") if ".log" in i.name}
    before = source.all_latest()
    results = source.fold()
    assert all("do not have the latest records of backup" in r.problem for r in results)
    assert source.all_latest() == before
    assert not proofs(source.place)
    assert {i.name for i in source.place.store.list("") if ".log" in i.name} == names


def test_a_full_store_leaves_everything_as_it_was(source: CompactedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    before = source.all_latest()

    def full(*_: object, **__: object) -> None:
        raise StoreFull("no space left", subject="store")

    monkeypatch.setattr(source.place.store, "open_new", full)
    with pytest.raises(StoreFull):
        LogFolding(source.place, utc_now, random_token).run(FoldOptions(), lambda _: InlineEngine())
    monkeypatch.undo()
    assert source.all_latest() == before
    assert all(r.committed for r in source.fold())


def test_buried_keys_stay_for_the_backups_before_and_nowhere_else(place: SourceRef) -> None:
    source = CompactedSource(place)
    offsets = [source.write([(b"deleted", b"%d" % number), (b"k", b"%d" % number)]) for number in range(5)]
    first = source.back_up()
    source.write([(b"k", b"new"), (b"z", b"z")])
    second = source.back_up(bury_offsets=offsets)
    before = source.all_latest()
    assert b"deleted" in source.values(first)
    assert b"deleted" not in source.values(second)
    assert source.fold()[0].committed
    assert source.all_latest() == before
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, [first], "test")
    source.write([(b"z", b"y")])
    source.back_up()
    before = source.all_latest()
    assert source.fold()[0].committed
    assert source.all_latest() == before
    assert not any(record.key == b"deleted" for b in source.batches(second) for _, _, record in b.records)


def test_tombstones_go_only_when_asked_and_old_enough(place: SourceRef) -> None:
    source = CompactedSource(place, configs={"cleanup.policy": "compact", "delete.retention.ms": "1000"})
    source.write([(b"a", b"1"), (b"b", b"1")])
    source.write([(b"a", None), (b"c", b"1")])
    source.write([(b"z", b"z")])
    newest = source.back_up()
    source.fold()
    assert source.values(newest) == {b"a": None, b"b": b"1", b"c": b"1", b"z": b"z"}
    source.groups = {"slow": 2}
    source.write([(b"z", b"y")])
    newest = source.back_up()
    source.fold(drop_tombstones=True)
    assert b"a" in source.values(newest), "a group has not read it"
    source.groups = {"slow": 6}
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, [entry.id for entry in read_chain(place).completed], "test")
    again = CompactedSource(place, configs=source.configs, groups={"slow": 6})
    again.logs, again.ends = source.logs, source.ends
    newest = again.back_up()
    assert again.fold(drop_tombstones=True)[0].committed
    assert again.values(newest) == {b"b": b"1", b"c": b"1", b"z": b"y"}


def _sent(unit: FoldUnit) -> FoldUnit:
    made: FoldUnit = pickle.loads(pickle.dumps(unit))  # noqa: S301 - our own bytes
    return made


def test_units_and_results_cross_process_borders(source: CompactedSource) -> None:
    """As Spark sends them."""
    units = list[FoldUnit]()

    class Sending(InlineEngine):
        def map(self, task, units_, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
            sent = [replace(_sent(replace(unit, place=None)), place=unit.place) for unit in units_]
            units.extend(sent)
            made = super().map(task, sent, result, label=label, weight=weight)
            return [msgspec.msgpack.decode(msgspec.msgpack.encode(each), type=result) for each in made]

    place = source.place
    before = source.all_latest()
    assert all(r.committed for r in source.folding().run(FoldOptions(), lambda _: Sending()))
    assert source.all_latest() == before
    assert len({unit.seeds for unit in units}) == 2
    assert units[0].place.source == place.source


def test_a_reader_that_began_between_two_folds_keeps_its_objects(source: CompactedSource) -> None:
    """It goes by the chain as it was; the hold keeps what the second fold replaced."""
    place = source.place
    source.fold()
    entry = read_chain(place).completed[-1]
    manifest = read_manifest(place, entry)
    rows = list(rows_of(PartReader(place), manifest, served_parts(manifest, read_chain(place))).to_segments())
    with reading(place, BackupId(entry.id), this_process("reader"), "restore", random_token):
        with writing(place, "delete", utc_now, random_token) as session:
            delete(session, [each.id for each in session.folded.completed[:-1]], "test")
        assert all(r.committed for r in source.fold())
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, _AT_ONCE)
            collect(session, _AT_ONCE)
        names = {i.name for i in place.store.list("")}
        assert {layout.segment("prod", row) for row in rows if row.has_object} <= names


def test_one_kept_backup_takes_little_more_than_the_latest_records(place: SourceRef) -> None:
    source, rng = CompactedSource(place), random.Random(5)
    for _ in range(60):
        source.write([(b"key-%03d" % rng.randrange(300), bytes(100)) for _ in range(100)])
    newest = source.back_up()
    (done,) = source.fold()
    assert done.outcome is not None
    assert done.outcome.after is not None
    table = source.values(newest)
    alone = batch_of(0, [Slow(n, 0, key, bytes(100)) for n, key in enumerate(table)])  # type: ignore[arg-type]  # bytes
    assert len(table) == 300
    assert done.outcome.after.stored_bytes <= 1.3 * len(alone)


def test_a_backup_that_a_repair_brings_back_after_a_fold_is_folded_over(source: CompactedSource) -> None:
    place = source.place
    first, second, newest = (entry.id for entry in read_chain(place).completed)
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, [second], "test")
        lost = layout.commit(place.source, session.folded.generation)
    kept = {backup: source.latest(backup) for backup in (first, newest)}
    source.fold()
    place.store.delete(lost)
    repair(place, utc_now, random_token, timedelta(minutes=1), accept_loss=True, dry_run=False)
    chain = read_chain(place)
    assert [entry.id for entry in chain.completed] == [first, second, newest]
    for entry in chain.completed:
        doubts = KAFKA.doubts(place, chain, read_manifest(place, entry))
        if entry.id == second:
            assert {(f.code, f.severity) for f in doubts} == {("folded-over", Severity.DAMAGE)}
            with pytest.raises(Damaged, match="folded over") as refused:
                view_backup(place, entry)
            assert refused.value.exit_code == 10
        else:
            assert not doubts
            view_backup(place, entry)
            assert source.latest(entry.id) == kept[entry.id]


def test_a_backup_whose_commit_is_lost_after_a_fold_is_read_from_the_folded_parts(source: CompactedSource) -> None:
    """The fold honoured it, and the objects before the fold are gone."""
    place = source.place
    before, ids = source.all_latest(), [entry.id for entry in read_chain(place).completed]
    lost = layout.commit(place.source, read_chain(place).completed[1].generation)
    source.fold()
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, _AT_ONCE)
        collect(session, _AT_ONCE)
    place.store.delete(lost)
    repair(place, utc_now, random_token, timedelta(minutes=1), accept_loss=True, dry_run=False)
    assert [entry.id for entry in read_chain(place).completed] == ids
    assert source.all_latest() == before
    assert_good(source)


def test_a_restore_point_is_refused_although_the_commit_of_the_fold_is_lost(source: CompactedSource) -> None:
    """The backup after it has the folded objects, and recorded up to where."""
    place = source.place
    before = read_chain(place).generation
    source.fold()
    lost = [layout.commit(place.source, number) for number in range(before + 1, read_chain(place).generation + 1)]
    (start, *_), folded_to = sorted(proofs(place)[0].fold.cuts, key=lambda cut: cut.end), 99  # type: ignore[union-attr]
    source.write([(b"k0", b"later")])
    newest = source.back_up()
    for name in lost:
        place.store.delete(name)
    repair(place, utc_now, random_token, timedelta(minutes=1), accept_loss=True, dry_run=False)
    chain = read_chain(place)
    assert not chain.folds
    view = view_backup(place, chain.completed[-1])
    assert view.entry.id == newest
    assert {fold.end for fold in view.folds.values()} == {folded_to}
    for end in (start.end, 50):
        with pytest.raises(UsageError, match=rf"up to offset {end}: offsets \[0, 99\) were folded"):
            refuse_folded_points(view, {source.log(): Range(0, end)}, None)
    refuse_folded_points(view, {source.log(): Range(0, folded_to)}, None)
    manifest = read_manifest(place, view.entry)
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, chain))
    report = KAFKA.contents(place, chain, manifest, log_totals(rows))
    assert isinstance(report, KafkaReport)
    assert [log.folded_to for log in report.topics[0].logs] == [folded_to, folded_to]


def test_a_later_fold_does_not_honour_a_backup_that_was_folded_over(source: CompactedSource) -> None:
    """Its records are gone: that the second fold changes nothing of it proves nothing."""
    place = source.place
    _, second, _ = (entry.id for entry in read_chain(place).completed)
    with writing(place, "delete", utc_now, random_token) as session:
        delete(session, [second], "test")
        lost = layout.commit(place.source, session.folded.generation)
    source.fold()
    place.store.delete(lost)
    repair(place, utc_now, random_token, timedelta(minutes=1), accept_loss=True, dry_run=False)
    for partition in (0, 1):
        for value in (b"again", b"once more", b"at last"):
            source.write([(b"k1", value), (b"last", value)], partition)
    source.back_up()
    assert any(result.committed for result in source.fold())
    chain = read_chain(place)
    over = [e.id for e in chain.completed if folded_over(chain, e.id, read_manifest(place, e).cut)]
    assert over == [second]


def test_a_backup_that_was_verified_before_a_fold_is_good_after_it(source: CompactedSource) -> None:
    verifier = Verifier(
        source.place, InlineEngine(), this_process("verify"), utc_now, random_token, check_logs, check_records
    )
    for _ in range(2):
        for entry in read_chain(source.place).completed:
            verified = verifier.verify(BackupId(entry.id), "records")
            assert verified.document.verdict == GOOD, verified.findings
        source.fold()


def test_info_says_up_to_where_a_log_was_folded(source: CompactedSource) -> None:
    source.fold()
    chain = read_chain(source.place)
    manifest = read_manifest(source.place, chain.completed[-1])
    rows = rows_of(PartReader(source.place), manifest, served_parts(manifest, chain))
    report = KAFKA.contents(source.place, chain, manifest, log_totals(rows))
    assert isinstance(report, KafkaReport)
    assert [log.folded_to for log in report.topics[0].logs] == [99, 99]


def test_folded_segments_are_merged_with_each_other_only(source: CompactedSource) -> None:
    source.fold()
    for number in range(2):
        source.write([(b"k0", b"later %d" % number)] * 20)
        source.back_up()
    before = source.all_latest()
    done = optimizing(source.place, utc_now, random_token).run(MergeRule(1 << 20), lambda _: InlineEngine())
    assert done.objects_after == 3, "two folded logs, and what came later"
    assert source.all_latest() == before
    manifest = read_manifest(source.place, read_chain(source.place).completed[-1])
    rows = rows_of(PartReader(source.place), manifest, served_parts(manifest, read_chain(source.place))).to_segments()
    assert {99} == {row.end for row in rows if row.start == 0}


def test_a_barrier_left_out_by_mistake_replaces_nothing(
    source: CompactedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cuts are taken from the backups again before the commit."""
    honest = plan._barriers

    def forgetful(*args: Any) -> Barriers:
        made = honest(*args)
        return Barriers(made.cuts[1:], made.burials)

    monkeypatch.setattr(plan, "_barriers", forgetful)
    before = source.all_latest()
    assert {r.problem for r in source.fold()} == {
        "the kept backups are not those that the fold honoured: nothing was replaced"
    }
    assert source.all_latest() == before
    assert not proofs(source.place)

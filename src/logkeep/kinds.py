"""What each kind of source brings to the verbs that serve every kind. A new kind is a package and one entry here.

Heavy parts (numpy, numba, Arrow, clients) are imported when they are used.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.repository.backups.source import read_facts
from logkeep.repository.chain.commits import SourceRef

if TYPE_CHECKING:
    from datetime import datetime

    from logkeep.checkpoint.certificate.set_members import CutsOf, ExternalCut
    from logkeep.kafka.client.settings import ClientSettings
    from logkeep.kafka.retention.plan import TrimPlan
    from logkeep.kafka.retention.rules import SourceRetention
    from logkeep.model.findings import Finding
    from logkeep.model.segments import LogName
    from logkeep.repository.backups.manifest import Manifest
    from logkeep.repository.chain.fold import BackupEntry, Folded
    from logkeep.repository.parts import LogTotals
    from logkeep.repository.upkeep.optimize import MergeWay
    from logkeep.repository.verify.checks import ReadTask
    from logkeep.repository.verify.run import Deeper

    PlanTrims = Callable[
        [SourceRef, Folded, SourceRetention, BackupEntry | None, Mapping[int, str], datetime], TrimPlan
    ]


@dataclass(frozen=True)
class DeepRequest:
    """What a deeper check may need. `entry` raises Damaged where the chain cannot be read."""

    place: SourceRef
    level: str
    whole: bool
    """Every object is to be read, not a sample."""
    entry: "Callable[[], BackupEntry]"
    client_settings: "Callable[[], ClientSettings]"
    cache: Path
    resources: ExitStack
    say: Callable[[str], None] = lambda _: None
    """Gets a line about what takes some seconds."""
    show_keys: bool = False
    """Report keys of records in clear."""
    limit_download: int | None = None
    """Bytes per second from the cluster."""


def _hash_objects() -> "ReadTask":
    from logkeep.repository.verify.checks import hash_objects  # noqa: PLC0415

    return hash_objects


@dataclass(frozen=True)
class SourceKind:
    """The defaults are those of a source of unknown kind."""

    name: str = ""
    title: str = ""
    verify_levels: tuple[str, ...] = ("files", "data")
    whole_levels: tuple[str, ...] = ()
    """Levels that cannot be done with a sample of the objects."""
    read_task: "Callable[[], ReadTask]" = _hash_objects
    """How `verify` reads objects at the level `data`."""
    deeper: "Callable[[DeepRequest], Deeper | None]" = lambda _: None
    """What `verify` does instead of `read_task`, where the level asks for more."""
    contents: "Callable[[SourceRef, Folded, Manifest, Mapping[LogName, LogTotals]], msgspec.Struct | None]" = (
        lambda *_: None
    )
    """What `info` shows of a backup besides its logs."""
    unreachable_without: "Callable[[SourceRef, Folded, tuple[int, ...]], tuple[str, ...]]" = lambda *_: ()
    """What can be restored today, and not without these backups."""
    doubts: "Callable[[SourceRef, Folded, Manifest], tuple[Finding, ...]]" = lambda *_: ()
    """What a whole backup may lack all the same, beyond the findings in its manifest."""
    lasting: tuple[str, ...] = ()
    """Codes of findings in a manifest that every verification of the backup repeats."""
    deletions_left: "Callable[[SourceRef, Manifest, int, int], float | None]" = lambda *_: None
    """Seconds until the next backup can no longer prove deletions by time, from two times in ms: now, and when a run
    last found nothing new (-1: none did)."""
    merge_way: "Callable[[], MergeWay] | None" = None
    """How `optimize` merges small objects."""
    external_cuts: "CutsOf" = lambda *_: {}
    """Where a backup ends, by the names under which applications report positions of its source."""
    trims: "PlanTrims | None" = None
    """What `prune` trims by the retention of the source; None: the source has none."""
    drill_flags: tuple[str, ...] = ("--embedded",)
    """What `drill` needs to find a scratch target without any settings."""
    leads_backup_set: bool = False
    """Captured first in a backup set and restored last; its certificate says whether the cuts belong together."""
    processes_take_part: bool = False
    """The source's own processes hold its lease now and then, for a moment, and know ids that the chain does not."""


def kind_named(name: str) -> SourceKind:
    return next((kind for kind in (KAFKA, ZOOKEEPER, APPLICATION, ZEEBE) if kind.name == name), SourceKind(name, name))


def kind_of(place: SourceRef, *, strict: bool = False) -> SourceKind:
    """The kind of a source; the unknown kind where it has no facts yet, or damaged ones unless `strict`."""
    try:
        facts = read_facts(place)
    except Damaged:
        if strict:
            raise
        facts = None
    return SourceKind() if facts is None else kind_named(facts.kind)


def require_kind(place: SourceRef, kind: SourceKind) -> None:
    """Raises UsageError when the source is known as another kind."""
    facts = read_facts(place)
    if facts is not None and facts.kind != kind.name:
        what = f"it is a source of kind {facts.kind}, not {kind.name}"
        raise UsageError(what, subject=place.source, remedy="name another one with --source; `logkeep list` shows all")


def _check_kafka_logs() -> "ReadTask":
    """Archived logs are checked batch by batch while they are hashed."""
    from logkeep.kafka.logs.batch_check import check_logs  # noqa: PLC0415

    return check_logs


def _kafka_deeper(request: DeepRequest) -> "Deeper | None":
    if request.level == "records":
        from logkeep.kafka.verify.records import check_records  # noqa: PLC0415

        return check_records
    if request.level == "source":
        from logkeep.kafka.verify.source import SourceCheck  # noqa: PLC0415

        return SourceCheck(request.client_settings(), request.show_keys, request.limit_download)
    return None


def _kafka_contents(
    place: SourceRef, folded: "Folded", manifest: "Manifest", totals: "Mapping[LogName, LogTotals]"
) -> msgspec.Struct | None:
    from logkeep.kafka.record.contents import report  # noqa: PLC0415
    from logkeep.kafka.record.folded_backups import known_folds  # noqa: PLC0415
    from logkeep.kafka.record.import_label import read_label  # noqa: PLC0415
    from logkeep.kafka.record.scram import ROLE as SCRAM_ROLE  # noqa: PLC0415
    from logkeep.kafka.record.scram import ScramDocument  # noqa: PLC0415
    from logkeep.kafka.record.stored_record import read_record  # noqa: PLC0415
    from logkeep.repository.backups.attachments import read_attachment  # noqa: PLC0415
    from logkeep.repository.backups.folds import folds_by_log  # noqa: PLC0415

    record = read_record(place, manifest)
    if record is None:
        return None
    scram = read_attachment(place, manifest, SCRAM_ROLE, ScramDocument)
    credentials = scram.credentials if scram is not None else None
    folds = known_folds(folds_by_log(folded, [c.log for c in manifest.cut]), record, manifest.id)
    folded_to = {log: fold.end for log, fold in folds.items()}
    buried, label = _kafka_buried(place, folded, manifest), read_label(place, manifest)
    return report(record, manifest, totals, credentials, buried, folded_to, label)


def _kafka_buried(place: SourceRef, folded: "Folded", manifest: "Manifest") -> "dict[LogName, int]":
    """How many offsets of each log's cut are buried. The objects are read only where there are some."""
    if not folded.burials(manifest.id):
        return {}
    from logkeep.kafka.logs.burials import read_buried  # noqa: PLC0415
    from logkeep.repository.backups.burials import burials_by_log  # noqa: PLC0415

    found: dict[LogName, int] = {}
    cuts, folds = {c.log: c for c in manifest.cut}, folded.folded_logs()
    for log, burials in burials_by_log(folded, manifest.id, cuts).items():
        buried = read_buried(place, [b.object for b in burials])
        # A fold drops buried records that no kept backup sees: below its end, how many are left is not known.
        start = max(cuts[log].start, folds[log].end) if log in folds else cuts[log].start
        found[log] = buried.within(start, max(start, cuts[log].end)).count if buried is not None else 0
    return found


def _kafka_doubts(place: SourceRef, folded: "Folded", manifest: "Manifest") -> "tuple[Finding, ...]":
    from logkeep.kafka.record.folded_backups import folded_over_findings  # noqa: PLC0415
    from logkeep.kafka.record.lost_burials import lost_burial_findings  # noqa: PLC0415
    from logkeep.kafka.record.stored_record import read_record  # noqa: PLC0415
    from logkeep.kafka.record.unproven_deletions import deletion_findings  # noqa: PLC0415
    from logkeep.repository.backups.burials import burials_by_log  # noqa: PLC0415
    from logkeep.repository.backups.folds import with_dense  # noqa: PLC0415

    def dense() -> "set[LogName]":
        from logkeep.repository.backups.content import PartReader, rows_of, served_parts  # noqa: PLC0415
        from logkeep.repository.parts import dense_logs  # noqa: PLC0415

        dense = dense_logs(rows_of(PartReader(place), manifest, served_parts(manifest, folded)))
        return with_dense(folded, manifest.id, dense)

    record = read_record(place, manifest)
    if record is None:
        return ()
    doubts = (f for f in deletion_findings(record, manifest, dense) if f not in manifest.findings)
    burials = burials_by_log(folded, manifest.id, [c.log for c in manifest.cut])
    return (*doubts, *lost_burial_findings(record, burials), *folded_over_findings(folded, manifest))


def _kafka_deletions_left(place: SourceRef, manifest: "Manifest", now_ms: int, seen_ms: int) -> float | None:
    from logkeep.kafka.record.deletion_times import compacted_topics_of, least_left_s  # noqa: PLC0415
    from logkeep.kafka.record.stored_record import read_record  # noqa: PLC0415

    record = read_record(place, manifest)
    return least_left_s(record.logs, compacted_topics_of(record), now_ms, seen_ms) if record is not None else None


def _kafka_trims(
    place: SourceRef,
    folded: "Folded",
    wanted: "SourceRetention",
    newest_good: "BackupEntry | None",
    kept_by: Mapping[int, str],
    now: "datetime",
) -> "TrimPlan":
    from logkeep.kafka.retention.facts import trims_of_source  # noqa: PLC0415

    return trims_of_source(place, folded, wanted, newest_good, kept_by, now)


def _kafka_merge_way() -> "MergeWay":
    from logkeep.kafka.merge import WAY  # noqa: PLC0415

    return WAY


def _kafka_cuts(place: SourceRef, manifest: "Manifest") -> "Mapping[str, ExternalCut]":
    """The last offset of each partition: `kafka-prod/orders/3`."""
    from logkeep.checkpoint.certificate.set_members import ExternalCut  # noqa: PLC0415

    return {f"{place.source}/{cut.log}": ExternalCut(cut.end - 1) for cut in manifest.cut}


def _zookeeper_deeper(request: DeepRequest) -> "Deeper | None":
    if request.level == "files" or not request.whole:
        return None
    from logkeep.zookeeper.repo.verify import DeepVerification  # noqa: PLC0415
    from logkeep.zookeeper.verify.run import Level  # noqa: PLC0415

    entry, level = request.entry(), Level(request.level)
    if level is not Level.BOOT:
        return DeepVerification(entry, level)
    from logkeep.embedded.zookeeper_boot import boot_of, version_of  # noqa: PLC0415
    from logkeep.zookeeper.repo.view import view_of  # noqa: PLC0415

    scratch = Path(request.resources.enter_context(tempfile.TemporaryDirectory(prefix="logkeep-boot-")))
    boot = boot_of(version_of(view_of(request.place, entry)), request.cache, request.say)
    return DeepVerification(entry, level, boot, scratch / "data")


def _zookeeper_contents(
    place: SourceRef, folded: "Folded", manifest: "Manifest", _totals: "Mapping[LogName, LogTotals]"
) -> msgspec.Struct | None:
    from logkeep.zookeeper.repo.reachable import record_rows  # noqa: PLC0415
    from logkeep.zookeeper.repo.report import report  # noqa: PLC0415

    entry = folded.entry(manifest.id)
    found = record_rows(place, folded, entry) if entry is not None else None
    return report(*found) if found is not None else None


def _zookeeper_cuts(place: SourceRef, manifest: "Manifest") -> "Mapping[str, ExternalCut]":
    """The last zxid of the ensemble, under the name of the source."""
    from logkeep.checkpoint.certificate.set_members import ExternalCut  # noqa: PLC0415
    from logkeep.repository.backups.attachments import read_attachment  # noqa: PLC0415
    from logkeep.zookeeper.repo.record import ROLE, EnsembleRecord  # noqa: PLC0415

    record = read_attachment(place, manifest, ROLE, EnsembleRecord)
    return {} if record is None else {place.source: ExternalCut(record.backup_zxid, counter_bits=32)}


def _zookeeper_unreachable(place: SourceRef, folded: "Folded", gone: tuple[int, ...]) -> tuple[str, ...]:
    from logkeep.zookeeper.repo.reachable import lost_by  # noqa: PLC0415

    return lost_by(place, folded, gone)


def _zookeeper_merge_way() -> "MergeWay":
    from logkeep.zookeeper.repo.merge import WAY  # noqa: PLC0415

    return WAY


def _application_deeper(request: DeepRequest) -> "Deeper | None":
    if request.level != "cut":
        return None
    from logkeep.checkpoint.certificate.run import CutCheck  # noqa: PLC0415

    return CutCheck(lambda place, manifest: kind_named(manifest.kind).external_cuts(place, manifest))


def _check_application_objects() -> "ReadTask":
    """Archived logs are checked batch by batch, snapshots by their hashes."""
    from logkeep.kafka.logs.batch_check import check_logs_and_files  # noqa: PLC0415

    return check_logs_and_files


KAFKA = SourceKind(
    name="kafka",
    title="Kafka",
    verify_levels=("files", "data", "records", "source", "cut"),
    whole_levels=("cut",),
    read_task=_check_kafka_logs,
    deeper=_kafka_deeper,
    contents=_kafka_contents,
    doubts=_kafka_doubts,
    deletions_left=_kafka_deletions_left,
    merge_way=_kafka_merge_way,
    external_cuts=_kafka_cuts,
    trims=_kafka_trims,
)
ZOOKEEPER = SourceKind(
    name="zookeeper",
    title="ZooKeeper",
    verify_levels=("files", "data", "replay", "boot"),
    whole_levels=("replay", "boot"),
    deeper=_zookeeper_deeper,
    contents=_zookeeper_contents,
    unreachable_without=_zookeeper_unreachable,
    merge_way=_zookeeper_merge_way,
    external_cuts=_zookeeper_cuts,
)
APPLICATION = SourceKind(
    name="application",
    title="application",
    lasting=("log-lost", "log-branched"),
    verify_levels=("files", "data", "cut"),
    whole_levels=("cut",),
    deeper=_application_deeper,
    read_task=_check_application_objects,
    drill_flags=(),
    leads_backup_set=True,
    processes_take_part=True,
)
ZEEBE = SourceKind(name="zeebe", title="Zeebe", drill_flags=())

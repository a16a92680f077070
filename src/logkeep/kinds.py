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
    from logkeep.kafka.client.settings import ClientSettings
    from logkeep.model.segments import LogName
    from logkeep.repository.backups.manifest import Manifest
    from logkeep.repository.chain.fold import BackupEntry, Folded
    from logkeep.repository.parts import LogTotals
    from logkeep.repository.upkeep.optimize import MergeWay
    from logkeep.repository.verify.checks import ReadTask
    from logkeep.repository.verify.run import Deeper


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
    merge_way: "Callable[[], MergeWay] | None" = None
    """How `optimize` merges small objects."""


def kind_named(name: str) -> SourceKind:
    return next((kind for kind in (KAFKA, ZOOKEEPER) if kind.name == name), SourceKind(name, name))


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
        raise UsageError(f"it is a source of kind {facts.kind}, not {kind.name}", subject=place.source)


def _check_kafka_logs() -> "ReadTask":
    """Archived logs are checked batch by batch while they are hashed."""
    from logkeep.kafka.logs.batch_check import check_logs  # noqa: PLC0415

    return check_logs


def _kafka_deeper(request: DeepRequest) -> "Deeper | None":
    if request.level == "records":
        from logkeep.kafka.verify.records import check_records  # noqa: PLC0415

        return check_records
    if request.level == "source":
        from logkeep.kafka.verify.source import source_check  # noqa: PLC0415

        return source_check(request.client_settings())
    return None


def _kafka_contents(
    place: SourceRef, _folded: "Folded", manifest: "Manifest", totals: "Mapping[LogName, LogTotals]"
) -> msgspec.Struct | None:
    from logkeep.kafka.record.contents import report  # noqa: PLC0415
    from logkeep.kafka.record.documents import ROLE, ClusterRecord  # noqa: PLC0415
    from logkeep.kafka.record.scram import ROLE as SCRAM_ROLE  # noqa: PLC0415
    from logkeep.kafka.record.scram import ScramDocument  # noqa: PLC0415
    from logkeep.repository.backups.attachments import read_attachment  # noqa: PLC0415

    record = read_attachment(place, manifest, ROLE, ClusterRecord)
    if record is None:
        return None
    scram = read_attachment(place, manifest, SCRAM_ROLE, ScramDocument)
    return report(record, manifest, totals, scram.credentials if scram is not None else None)


def _kafka_merge_way() -> "MergeWay":
    from logkeep.kafka.merge import WAY  # noqa: PLC0415

    return WAY


def _zookeeper_deeper(request: DeepRequest) -> "Deeper | None":
    if request.level == "files" or not request.whole:
        return None
    from logkeep.zookeeper.repo.verify import DeepVerification  # noqa: PLC0415
    from logkeep.zookeeper.verify.run import Level  # noqa: PLC0415

    entry, level = request.entry(), Level(request.level)
    if level is not Level.BOOT:
        return DeepVerification(entry, level)
    from logkeep.embedded.booting import boot_of, version_of  # noqa: PLC0415
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


def _zookeeper_unreachable(place: SourceRef, folded: "Folded", gone: tuple[int, ...]) -> tuple[str, ...]:
    from logkeep.zookeeper.repo.reachable import lost_by  # noqa: PLC0415

    return lost_by(place, folded, gone)


def _zookeeper_merge_way() -> "MergeWay":
    from logkeep.zookeeper.repo.merge import WAY  # noqa: PLC0415

    return WAY


KAFKA = SourceKind(
    name="kafka",
    title="Kafka",
    verify_levels=("files", "data", "records", "source"),
    read_task=_check_kafka_logs,
    deeper=_kafka_deeper,
    contents=_kafka_contents,
    merge_way=_kafka_merge_way,
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
)

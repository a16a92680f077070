"""What a run of `kafka backup` is asked for, and what it hands on: options, copied logs, the result."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_passes import CompactedMode
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.generations.plan import GenerationRule
from logkeep.kafka.backup.plan import Plan
from logkeep.kafka.backup.units import DEFAULT_SEGMENT_BYTES, CopyResult
from logkeep.kafka.record.documents import GroupRecord, PartitionRecord
from logkeep.kafka.record.scram import ScramOptions
from logkeep.kafka.registry.settings import RegistrySettings
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.repository.backups.manifest import AttachmentRef, KnownGap
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry


class ApplicationCut(Protocol):
    """The cut of an application that runs on the cluster. The backup calls these in order, and copies after `take`."""

    def take(self, backup_id: BackupId) -> None:
        """Let every task of the application take its checkpoint. Raises LogkeepError if one does not."""

    def groups(self, found: tuple[GroupRecord, ...]) -> tuple[GroupRecord, ...]:
        """The groups of the record, those of the application at the offsets of their checkpoints."""

    def attach(self, place: SourceRef, backup_id: BackupId, token: str) -> AttachmentRef:
        """Store the positions of the cut beside the manifest."""

    def findings(self) -> tuple[Finding, ...]:
        """What the user should know of the cut."""


@dataclass(frozen=True)
class KafkaBackupOptions:
    """What the user asked for."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    internal: bool = False
    wanted_id: BackupId | None = None
    resume: bool = False
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    """The sources that take part under the same id."""
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    compression: Codec = Codec.NONE
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""
    lease_ttl: timedelta = timedelta(minutes=5)
    scram: ScramOptions | None = None
    compacted: CompactedMode = CompactedMode.AUTO
    accept_deletions: tuple[str, ...] = ()
    """Topics whose deletions are buried, however many they are."""
    registry: RegistrySettings | None = None
    """The schema registry whose schemas are archived too."""
    generations: GenerationRule = field(default_factory=GenerationRule)
    application: ApplicationCut | None = None
    """The application whose checkpoint this backup has."""


@dataclass(frozen=True)
class CopiedLogs:
    """What was copied up to one cut."""

    assembled: Assembled
    facts: Facts
    results: tuple[CopyResult, ...] = ()
    """The results of all ranges; another cut continues them."""
    added: tuple[CopyResult, ...] = ()
    """The results among these that were copied last."""
    steady: bool = True
    """False: logs changed their history meanwhile, and were copied again; no other cut follows in this run."""


@dataclass(frozen=True)
class KafkaBackupDone:
    """The result of a run."""

    entry: BackupEntry
    facts: Facts
    plan: Plan
    gaps: tuple[KnownGap, ...]
    findings: tuple[Finding, ...]
    logs: tuple[PartitionRecord, ...]
    offsets: int = 0
    """How many offsets are new in this backup, including those that an interrupted run had copied."""
    changed: bool = True
    """False: nothing was committed, because `entry` still describes the cluster."""
    catch_up: str | None = None
    """What was copied of the next generation of a topic."""
    switched: frozenset[str] = frozenset()
    """Topics whose new generation is active from this backup on."""

"""`backup_info.json`: what is in a bundle, for programs. Read strictly where it matters: it may come from anywhere.

`name`, `size` and `checksum` are of the plain bytes without padding; `stored_name` and `stored_size` of the file that
holds them. Names are checked and never used as paths: the file of an entry is its kind's directory and a name that
`formats.zookeeper.names` knows.
"""

from pathlib import Path
from typing import Annotated, Final

import msgspec

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zookeeper.names import FileKind, parse_name
from logkeep.model.findings import Finding
from logkeep.model.segments import Codec, Proof
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.info_file import seal_of
from logkeep.zookeeper.model.archived import FileOrigin, LogFileEnding

VERSION: Final = "1.1"
"""1.1: sealed. Releases that read 1.0 read it too."""
WITHOUT_DOCUMENT: Final = (
    "restore the document from a copy; or unpack what is in snapshots and txnlogs into one directory version-2, and "
    "run `zkbackup backup` with it as --zk-data-dir: that makes a new backup of them"
)
"""The remedy for a user who has the files of a bundle, but no readable document."""
_LARGEST_BYTES: Final = 64 << 20
_SUFFIX: Final = {"": Codec.NONE, ".gz": Codec.GZIP, ".zst": Codec.ZSTD}
Checksum = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
Hex = Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-f]{1,16}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class ZxidField(msgspec.Struct, frozen=True):
    hex: Hex
    decimal: Count


class Server(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    host: str
    data_dir: str
    log_dir: str
    member: str = "standalone"
    role: str = ""
    zxid: Hex | None = None
    current_epoch: int | None = None
    accepted_epoch: int | None = None
    voters: int | None = None


class SnapshotEntry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    zxid: Hex
    size: Count
    checksum: Checksum
    stored_name: str
    stored_size: Count
    stored_checksum: Checksum
    fuzzy_end: Hex | None = None
    bound: Hex | None = None
    digest: Hex | None = None
    digest_zxid: Hex = "0x0"
    nodes: Count = 0
    origin: FileOrigin = FileOrigin.DISK


class LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    start_zxid: Hex
    end_zxid: Hex
    size: Count
    status: str
    """`valid`, `truncated`, `damaged` or `repaired`."""
    transaction_count: Count
    checksum: Checksum
    stored_name: str
    stored_size: Count
    stored_checksum: Checksum
    source_name: str
    """The file it was taken from: pieces of one file follow each other under names of their own."""
    min_time_ms: int
    max_time_ms: int
    last_adler: int
    ending: LogFileEnding
    proof: Proof
    borders: tuple[tuple[Hex, Hex], ...] = ()
    digests: bool | None = None
    note: str = ""


class DamagedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was found, below `damaged`."""

    name: str
    size: Count
    checksum: Checksum
    positions: tuple[int, ...] = ()


class Files(msgspec.Struct, frozen=True, kw_only=True):
    snapshots: tuple[SnapshotEntry, ...]
    txnlogs: tuple[LogEntry, ...]
    config: tuple[str, ...] = ()
    damaged: tuple[DamagedEntry, ...] = ()


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    enabled: bool
    total_files: int
    valid_files: int
    corrupted_files: int
    repaired_files: int
    unrecoverable_files: int


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    total_size: Count
    compressed_size: Count
    duration_seconds: float


class Authentication(msgspec.Struct, frozen=True, kw_only=True):
    schemes: tuple[str, ...] = ()


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    version: str = VERSION
    backup_id: str
    backup_timestamp: str
    backup_zxid: ZxidField
    zookeeper: Server
    files: Files
    validation: Validation
    statistics: Statistics
    compression: Codec = Codec.NONE
    history: str = "1"
    authentication: Authentication = Authentication()
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    exit_code: int = 0
    seal: Checksum | msgspec.UnsetType = msgspec.UNSET
    """The SHA-256 of the document: see `info_file`."""


def with_seal(info: BackupInfo) -> BackupInfo:
    return msgspec.structs.replace(info, seal=seal_of(msgspec.json.decode(msgspec.json.encode(info))))


def encoded(info: BackupInfo) -> bytes:
    return msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n"


def read_info(bundle: Path) -> BackupInfo:
    """Raises Damaged for a document that is missing or breaks its schema, FormatTooNew for one from the future."""
    path = layout.info_path(bundle)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        raise Damaged(f"it cannot be read: {why}", subject=str(path), remedy=WITHOUT_DOCUMENT) from error
    if len(data) > _LARGEST_BYTES:
        raise Damaged("it is larger than any document of a backup", subject=str(path))
    try:
        info = msgspec.json.decode(data, type=BackupInfo)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"it does not follow its schema: {error}", subject=str(path), remedy=WITHOUT_DOCUMENT) from error
    if info.version.partition(".")[0] != VERSION.partition(".")[0]:
        raise FormatTooNew(f"it has format {info.version}, this release reads {VERSION}", subject=str(path))
    if int(info.backup_zxid.hex, 16) != info.backup_zxid.decimal:
        raise Damaged(
            "its last zxid differs between hexadecimal and decimal", subject=str(path), remedy=WITHOUT_DOCUMENT
        )
    _check_names(info, path)
    return info


def codec_of(entry: SnapshotEntry | LogEntry) -> Codec:
    """How the file of an entry is packed, by the suffix that its stored name adds."""
    return _SUFFIX[entry.stored_name.removeprefix(entry.name)]


def _check_names(info: BackupInfo, path: Path) -> None:
    names = [
        *((e.name, e.stored_name, FileKind.SNAPSHOT, e.zxid) for e in info.files.snapshots),
        *((e.name, e.stored_name, FileKind.LOG, e.start_zxid) for e in info.files.txnlogs),
    ]
    for name, stored, kind, zxid in names:
        parsed = parse_name(name)
        usual = parsed is not None and parsed.kind is kind and not parsed.stray and parsed.zxid == int(zxid, 16)
        if not usual or not stored.startswith(name) or stored.removeprefix(name) not in _SUFFIX:
            raise Damaged(f"{stored[:80]!r} is not the name of a stored file", subject=str(path))
    if len({stored for _, stored, *_ in names}) != len(names):
        raise Damaged("two entries have the same file", subject=str(path))

"""Builds and parses all object names of a repository; no other module does.

Names are built from checked values (see `model.segments`, `model.ids`), never taken from a document. Numbers are
padded to 20 digits so that names sort in numerical order.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from logkeep.model.ids import BackupId, RestoreId, is_id, source_name
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.model.time import within_reason

FORMAT = "logkeep.json"
FORMAT_COPY = "logkeep.copy.json"
SOURCES = "sources/"
PROBE = "probe-"
"""Objects of `store probe` have this prefix; it removes them again."""

MOST_NUMBERED = 999_999
"""Maximum number of receipts, lists of producers, or resumes of one restore."""

_TOKEN = r"(?P<token>[0-9a-f]{16})"
_NUMBER = r"(?P<number>[0-9]{20})"
_JOURNAL_UNIT = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,119}")


def padded(number: int) -> str:
    return f"{number:020d}"


def source_root(source: str) -> str:
    return f"{SOURCES}{source_name(source)}/"


def source_document(source: str) -> str:
    return f"{source_root(source)}source.json"


def freshness(source: str) -> str:
    """The last comparison with the source: advisory, replaced in place, never collected."""
    return f"{source_root(source)}freshness.json"


def commits(source: str) -> str:
    return f"{source_root(source)}commits/"


def commit(source: str, generation: int) -> str:
    return f"{commits(source)}{padded(generation)}.json"


def checkpoints(source: str) -> str:
    return f"{source_root(source)}checkpoints/"


def checkpoint(source: str, generation: int, token: str) -> str:
    return f"{checkpoints(source)}{padded(generation)}.{token}.json"


def backups(source: str) -> str:
    return f"{source_root(source)}backups/"


def backup(source: str, backup_id: BackupId) -> str:
    return f"{backups(source)}{padded(backup_id)}/"


def request(source: str, backup_id: BackupId) -> str:
    return f"{backup(source, backup_id)}request.json"


def journal(source: str, backup_id: BackupId) -> str:
    return f"{backup(source, backup_id)}journal/"


def receipt(source: str, backup_id: BackupId, unit: str, token: str) -> str:
    if not _JOURNAL_UNIT.fullmatch(unit):
        raise ValueError(f"{unit!r} cannot name a unit of work")
    return f"{journal(source, backup_id)}{unit}.{token}.json"


def attachment(source: str, backup_id: BackupId, role: str, token: str, codec: Codec = Codec.NONE) -> str:
    return f"{backup(source, backup_id)}attachments/{role}.{token}.json{codec.suffix}"


def manifest(source: str, backup_id: BackupId, token: str) -> str:
    return f"{backup(source, backup_id)}manifest.{token}.json"


def part(source: str, token: str) -> str:
    return f"{source_root(source)}parts/{token}.parquet"


def buried_root(source: str) -> str:
    return f"{source_root(source)}buried/"


def buried(source: str, token: str) -> str:
    """Runs of offsets of one log that later backups leave out."""
    return f"{buried_root(source)}{token}.runs"


def catch_up_root(source: str) -> str:
    return f"{source_root(source)}catch-ups/"


def catch_up(source: str, token: str) -> str:
    """Receipts of a copy that is made beside the active one."""
    return f"{catch_up_root(source)}{token}/"


def catch_up_receipt(source: str, catch_up_token: str, step: str, unit: str, token: str) -> str:
    if not _JOURNAL_UNIT.fullmatch(unit):
        raise ValueError(f"{unit!r} cannot name a unit of work")
    return f"{catch_up(source, catch_up_token)}{step}/{unit}.{token}.json"


def verifications(source: str) -> str:
    return f"{source_root(source)}verifications/"


def verification(source: str, backup_id: BackupId, when: str, level: str, verdict: str, token: str) -> str:
    return f"{verifications(source)}{padded(backup_id)}/{when}.{level}.{verdict}.{token}.json"


def histories(source: str) -> str:
    return f"{source_root(source)}histories/"


def history(source: str, number: int) -> str:
    """The reservation of a number for the history that a restore of an application begins; never collected."""
    return f"{histories(source)}{padded(number)}.json"


def restores(source: str) -> str:
    return f"{source_root(source)}restores/"


def restore(source: str, restore_id: RestoreId) -> str:
    return f"{restores(source)}{padded(restore_id)}/"


def restore_plan(source: str, restore_id: RestoreId) -> str:
    return f"{restore(source, restore_id)}plan.json"


def restore_producers(source: str, restore_id: RestoreId, number: int) -> str:
    return f"{restore(source, restore_id)}producers.{_counted(number)}.json"


def restore_resumed(source: str, restore_id: RestoreId, number: int) -> str:
    return f"{restore(source, restore_id)}resumed.{_counted(number)}.json"


def restore_map(source: str, restore_id: RestoreId, token: str) -> str:
    return f"{restore(source, restore_id)}map.{token}.map"


def restore_receipt(source: str, restore_id: RestoreId, number: int) -> str:
    return f"{restore(source, restore_id)}receipt.{_counted(number)}.json"


def restore_aborted(source: str, restore_id: RestoreId) -> str:
    return f"{restore(source, restore_id)}aborted.json"


def restore_ended(source: str, restore_id: RestoreId, number: int, ended: "EndedRestoreName") -> str:
    """The name of the document beside receipt `number`: it contains all that `list` shows."""
    return f"{restore(source, restore_id)}ended.{_counted(number)}.{ended.as_name()}.json"


def _counted(number: int) -> str:
    if not 1 <= number <= MOST_NUMBERED:
        raise ValueError(f"{number} is not between 1 and {MOST_NUMBERED}")
    return f"{number:06d}"


def garbage(source: str) -> str:
    return f"{source_root(source)}garbage/"


def mark(source: str, generation: int, token: str) -> str:
    return f"{garbage(source)}{padded(generation)}.{token}.json"


def lease(source: str) -> str:
    return f"leases/{source_name(source)}.json"


def role(source: str) -> str:
    """Which of several instances that follow the source is active."""
    return f"roles/{source_name(source)}/active.json"


def instances(source: str) -> str:
    return f"roles/{source_name(source)}/instances/"


def instance(source: str, name: str) -> str:
    return f"{instances(source)}{source_name(name)}.json"


def holds(source: str) -> str:
    return f"holds/{source_name(source)}/"


def hold(source: str, backup_id: BackupId, token: str) -> str:
    return f"{holds(source)}{padded(backup_id)}.{token}.json"


def collection_root(source: str, collection: Collection) -> str:
    return f"{source_root(source)}{collection}/"


def log_root(source: str, log: LogName) -> str:
    return f"{collection_root(source, log.collection)}{log.name}/{log.history}/partition={log.partition}/"


def object_of(source: str, log: LogName, first: int, token: str, codec: Codec) -> str:
    """The name of a data object whose first record is at position `first`."""
    kind = "snapshot" if log.collection is Collection.SNAPSHOTS else "log"
    return f"{log_root(source, log)}{padded(first)}.{token}.{kind}{codec.suffix}"


def index_of(source: str, log: LogName, first: int, token: str) -> str:
    """The name of the rebuildable index beside a data object."""
    return f"{log_root(source, log)}{padded(first)}.{token}.index"


def segment(source: str, piece: Segment) -> str:
    return object_of(source, piece.log, piece.first, piece.token, piece.codec)


class NameSuffix(NamedTuple):
    """The last part of a name: a number (generation or id) and, where there is one, a token."""

    number: int
    token: str


_PLACED = re.compile(rf"(?:.*/)?{_NUMBER}(?:\.{_TOKEN})?\.json")
_COLLECTABLE = re.compile(
    r"(?:topics|txnlogs|snapshots)/[A-Za-z0-9._-]{1,249}/[A-Za-z0-9._-]{1,64}/partition=[0-9]{1,10}/"
    r"[0-9]{20}\.[0-9a-f]{16}\.(?:log|snapshot|index)(?:\.zst|\.gz)?"
    r"|parts/[0-9a-f]{16}\.parquet|buried/[0-9a-f]{16}\.runs"
    r"|backups/[0-9]{20}/(?:journal/.+|attachments/.+|manifest\.[0-9a-f]{16}\.json)"
    r"|catch-ups/[0-9a-f]{16}/(?:copied|verified)/[A-Za-z0-9._=-]{1,200}\.json"
)
_IN_CATCH_UP = re.compile(rf".*/catch-ups/{_TOKEN}/.+")
_IN_BACKUP = re.compile(rf".*/backups/{_NUMBER}/.+")
_DATA = re.compile(rf".*/partition=[0-9]+/{_NUMBER}\.{_TOKEN}\.(?:log|snapshot|index)(?:\.zst|\.gz)?")
_VERIFICATION = re.compile(
    rf".*/verifications/{_NUMBER}/(?P<when>[0-9]{{8}}T[0-9]{{12}}Z)\.(?P<level>[a-z]+)\.(?P<verdict>[a-z]+)\.{_TOKEN}\.json"
)


def placed(name: str) -> NameSuffix | None:
    """Parse `<number>[.<token>].json`; None for any other name."""
    match = _PLACED.fullmatch(name)
    return NameSuffix(int(match["number"]), match["token"] or "") if match else None


def backup_of(name: str) -> BackupId | None:
    """The id of the backup in whose directory an object is."""
    match = _IN_BACKUP.fullmatch(name)
    return BackupId(int(match["number"])) if match else None


def catch_up_of(name: str) -> str | None:
    """The token of the catch-up in whose directory an object is."""
    match = _IN_CATCH_UP.fullmatch(name)
    return match["token"] if match else None


def collectable(source: str, name: str) -> bool:
    """Whether garbage collection may remove this object. A closed list: unknown names are left alone."""
    root = source_root(source)
    return name.startswith(root) and _COLLECTABLE.fullmatch(name, len(root)) is not None


def data_token(name: str) -> str | None:
    """The token of a data object or of its index: both are live or neither."""
    match = _DATA.fullmatch(name)
    return match["token"] if match else None


_DOCUMENT = re.compile(
    rf".*/(?:parts/{_TOKEN}\.parquet|buried/(?P<buried>[0-9a-f]{{16}})\.runs"
    r"|backups/[0-9]{20}/(?:manifest\.(?P<manifest>[0-9a-f]{16})\.json"
    r"|attachments/[a-z0-9-]+\.(?P<attachment>[0-9a-f]{16})\.json(?:\.zst)?))"
)
_IN_JOURNAL = re.compile(r".*/backups/[0-9]{20}/journal/.+")
_MANIFEST = re.compile(r".*/backups/[0-9]{20}/manifest\.[0-9a-f]{16}\.json")


def document_token(name: str) -> str | None:
    """The token of a part, of buried offsets, of a manifest or an attachment."""
    match = _DOCUMENT.fullmatch(name)
    return (match["token"] or match["buried"] or match["manifest"] or match["attachment"]) if match else None


def is_buried(name: str) -> bool:
    """Whether it is an object with buried offsets."""
    match = _DOCUMENT.fullmatch(name)
    return match is not None and match["buried"] is not None


def is_log(name: str) -> bool:
    """Whether a data object holds a log: not a snapshot."""
    return data_token(name) is not None and name.removesuffix(".zst").removesuffix(".gz").endswith(".log")


def in_journal(name: str) -> bool:
    return _IN_JOURNAL.fullmatch(name) is not None


def is_manifest(name: str) -> bool:
    return _MANIFEST.fullmatch(name) is not None


def source_at(name: str) -> str | None:
    """The source of an object; None for objects outside of any source."""
    parts = name.split("/", 2)
    return parts[1] if len(parts) == 3 else None


def past_source(source: str) -> str:
    """A name that sorts after every name of this source and before those of the next source."""
    return f"{SOURCES}{source}0"  # '0' comes right after '/'


_STORE_RESOLUTION = timedelta(seconds=2)
"""Stores round their times to seconds."""


def verification_time(moment: datetime) -> str:
    """A time as names of verifications have it: `20261116T021500123456Z`."""
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%S%fZ")


class VerificationName(NamedTuple):
    """The name of a stored verification, parsed: `list` needs no more than a listing."""

    backup: BackupId
    when: str
    """By the clock of the machine that verified."""
    level: str
    verdict: str
    stored_at: datetime | None = None
    """By the store's clock; None where it is not known."""

    @property
    def found_at(self) -> str:
        """`when`, or the store's time if that is earlier: a check cannot end after its result was stored.

        A clock that is ahead would otherwise place a good result after damage that is found later.
        """
        if self.stored_at is None or self.when <= verification_time(self.stored_at + _STORE_RESOLUTION):
            return self.when
        return verification_time(self.stored_at)

    @property
    def time(self) -> datetime:
        return _moment(self.found_at)


def verified(name: str) -> VerificationName | None:
    """Parse the name of a verification; None for a name that no release writes, also one with an impossible date."""
    match = _VERIFICATION.fullmatch(name)
    if match is None:
        return None
    try:
        _moment(match["when"])
    except ValueError:  # no such day or hour
        return None
    return VerificationName(BackupId(int(match["number"])), match["when"], match["level"], match["verdict"])


class EndedRestoreName(NamedTuple):
    """The name of the document beside a receipt, parsed: `list` needs no more than a listing."""

    backup: BackupId
    drill: bool
    verdict: str
    started: datetime
    finished: datetime
    duration_ms: int

    def as_name(self) -> str:
        kind = "drill" if self.drill else "restore"
        times = f"{_when(self.started)}.{_when(self.finished)}.{self.duration_ms}"
        return f"{padded(self.backup)}.{kind}.{self.verdict}.{times}"


class RestoreObject(NamedTuple):
    """The name of an object below `restores/`, parsed."""

    restore: RestoreId
    kind: str
    """`plan`, `producers`, `resumed`, `map`, `receipt`, `ended` or `aborted`."""
    number: int = 0
    token: str = ""
    ended: EndedRestoreName | None = None


_WHEN = r"[0-9]{8}T[0-9]{9}Z"
_IN_RESTORE = re.compile(
    rf"{_NUMBER}/(?:(?P<single>plan|aborted)\.json"
    r"|(?P<counted>producers|receipt|resumed)\.(?P<count>[0-9]{6})\.json"
    rf"|map\.{_TOKEN}\.map"
    r"|ended\.(?P<nth>[0-9]{6})\.(?P<backup>[0-9]{20})\.(?P<drill>drill|restore)\.(?P<verdict>[a-z]{1,20})"
    rf"\.(?P<started>{_WHEN})\.(?P<finished>{_WHEN})\.(?P<took>0|[1-9][0-9]{{0,14}})\.json)"
)


def restore_object(source: str, name: str) -> RestoreObject | None:
    """Parse a name below `restores/`; None for an unknown name: it is left alone."""
    root = restores(source)
    match = _IN_RESTORE.fullmatch(name, len(root)) if name.startswith(root) else None
    if match is None or not is_id(int(match["number"])):
        return None
    parsed = RestoreObject(RestoreId(int(match["number"])), match["single"] or "map", token=match["token"] or "")
    if match["counted"]:
        parsed = parsed._replace(kind=match["counted"], number=int(match["count"]))
    elif match["nth"]:
        parsed = parsed._replace(kind="ended", number=int(match["nth"]), ended=_ended(match))
    numbered = parsed.kind in {"producers", "receipt", "resumed", "ended"}
    lacking = (numbered and not parsed.number) or (parsed.kind == "ended" and parsed.ended is None)
    return None if lacking else parsed


def _ended(match: re.Match[str]) -> EndedRestoreName | None:
    try:
        started, finished = _moment(match["started"]), _moment(match["finished"])
    except ValueError:  # no such day or hour
        return None
    backup, drill = BackupId(int(match["backup"])), match["drill"] == "drill"
    return (
        EndedRestoreName(backup, drill, match["verdict"], started, finished, int(match["took"]))
        if is_id(backup)
        else None
    )


def _when(moment: datetime) -> str:
    """`20261116T021500123Z`."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y%m%dT%H%M%S}{utc.microsecond // 1000:03d}Z"


def _moment(text: str) -> datetime:
    return within_reason(datetime.strptime(text, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC))

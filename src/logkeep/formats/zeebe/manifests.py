"""Manifests of Zeebe's backups: what one broker stored of one partition, in every form that Zeebe writes.

Two forms: that of S3 (`snapshotFiles`, `segmentFiles`; Zeebe 8.1: `snapshotFileNames`, `segmentFileNames`) and that of
file systems, GCS and Azure (`snapshot`, `segments`). Times are decimal seconds or RFC 3339. Zeebe overwrites manifests
in a file system without cutting them, so bytes of a longer one may follow the document: they are counted, not read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, DecimalException
from enum import StrEnum
from typing import NoReturn

from logkeep.errors import Damaged

MAX_MANIFEST = 16 << 20
MAX_PARTITIONS = 8192
_MOST_FILES = 100_000
_MAX_LONG = (1 << 63) - 1
_LAST_SECOND = Decimal(253402300799)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"[A-Za-z0-9._=+-]{1,255}")
_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]+")
Json = Mapping[str, object]


class CopyState(StrEnum):
    """The state of one broker's copy, from the worst to the best."""

    DOES_NOT_EXIST = "does-not-exist"
    DELETED = "deleted"
    FAILED = "failed"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"


class ManifestForm(StrEnum):
    S3 = "s3"
    FILES = "files"


@dataclass(frozen=True)
class StoredFile:
    """A file of a copy. `compression` is empty for one that is stored as it was."""

    name: str
    compression: str = ""


@dataclass(frozen=True)
class CopyManifest:
    """One manifest."""

    form: ManifestForm
    partition: int
    checkpoint_id: int
    node: int
    state: CopyState
    failure: str
    snapshot_id: str
    """Empty without a snapshot."""
    checkpoint_position: int
    """-1 if the manifest has no descriptor, as that of a backup that failed early."""
    partitions: int
    """How many the cluster had; 0 if the manifest does not say so."""
    broker_version: str
    first_log_position: int | None
    checkpoint_type: str
    snapshot_files: tuple[StoredFile, ...]
    segment_files: tuple[StoredFile, ...]
    created: datetime | None
    modified: datetime | None
    stray_bytes: int
    """After the document."""


def read_manifest(data: bytes, subject: str = "") -> CopyManifest:
    """Raises Damaged."""
    try:
        document, stray = _first_document(data)
        return _manifest(document, stray)
    except (ValueError, RecursionError, DecimalException) as error:
        raise Damaged(f"the manifest cannot be read: {error}"[:300], subject=subject) from error


def _first_document(data: bytes) -> tuple[Json, int]:
    text = data.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)
    begin = len(text) - len(text.lstrip())
    found, end = decoder.raw_decode(text, begin)
    stray = len(text[end:].strip().encode("utf-8", "surrogateescape"))
    return _object(found, "the document"), stray


def _manifest(document: Json, stray: int) -> CopyManifest:
    identity, form = _object(document.get("id"), "id"), _form(document)
    descriptor = document.get("descriptor")
    about = _object(descriptor, "descriptor") if descriptor is not None else {}
    return CopyManifest(
        form=form,
        partition=_number(identity, "partitionId", 1, MAX_PARTITIONS),
        checkpoint_id=_number(identity, "checkpointId", 0),
        node=_number(identity, "nodeId", 0),
        state=CopyState(_text(document, "statusCode").lower().replace("_", "-")),
        failure=_text(document, "failureReason", ""),
        snapshot_id=_text(about, "snapshotId", ""),
        checkpoint_position=_number(about, "checkpointPosition", -1, default=-1),
        partitions=_number(about, "numberOfPartitions", 0, MAX_PARTITIONS, default=0),
        broker_version=_text(about, "brokerVersion", ""),
        first_log_position=_number(about, "firstLogPosition", -1) if about.get("firstLogPosition") else None,
        checkpoint_type=_text(about, "checkpointType", ""),
        snapshot_files=_files(document, form, "snapshot"),
        segment_files=_files(document, form, "segment"),
        created=_moment(document.get("createdAt")),
        modified=_moment(document.get("modifiedAt")),
        stray_bytes=stray,
    )


def _form(document: Json) -> ManifestForm:
    keys = {"snapshot", "segments"} & document.keys()
    return ManifestForm.FILES if keys else ManifestForm.S3


def _files(document: Json, form: ManifestForm, what: str) -> tuple[StoredFile, ...]:
    if form is ManifestForm.FILES:
        found = document.get("segments" if what == "segment" else what)
        listed = _object(found, what).get("files") if found is not None else None
        return _unique([StoredFile(_file_name(_object(each, "a file").get("name"))) for each in _list(listed)])
    if (names := document.get(f"{what}FileNames")) is not None:
        return _unique([StoredFile(_file_name(name)) for name in _list(names)])
    found = document.get(f"{what}Files")
    listed = _object(found, what).get("files") if found is not None else None
    named = _object(listed, "files") if listed is not None else {}
    return _unique([StoredFile(_file_name(name), _compression(value)) for name, value in named.items()])


def _unique(files: list[StoredFile]) -> tuple[StoredFile, ...]:
    if len(files) > _MOST_FILES or len({each.name for each in files}) != len(files):
        _refuse("it lists too many files, or one twice")
    return tuple(files)


def _compression(value: object) -> str:
    return _text(_object(value, "a file"), "compressionAlgorithm", "") if value is not None else ""


def _file_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in {".", ".."}:
        _refuse("a file has an impossible name")
    return name


def _moment(value: object) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _aware(datetime.fromisoformat(_FRACTION.sub(r"\1", value)))
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= _LAST_SECOND:
        _refuse("a time is impossible")
    return _EPOCH + timedelta(microseconds=int(value * 1_000_000))


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _object(value: object, what: str) -> Json:
    if not isinstance(value, dict):
        _refuse(f"{what} is not an object")
    return value


def _list(value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        _refuse("files are not a list")
    return value or []


def _text(within: Json, key: str, default: str | None = None) -> str:
    value = within.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        _refuse(f"{key} is not a text")
    return value


def _number(within: Json, key: str, least: int, most: int = _MAX_LONG, *, default: int | None = None) -> int:
    value = within.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        _refuse(f"{key} is not a possible number")
    return value


def _no_constant(name: str) -> NoReturn:
    _refuse(f"{name} is not a number")


def _refuse(reason: str) -> NoReturn:
    raise ValueError(reason)

"""Versions and object lock of an S3 bucket: whether they are on, and which names were written twice or deleted.

A bucket with versions keeps what was overwritten or deleted, and a lock keeps it until it expires. Neither keeps a
*name*: after a delete, which leaves a marker, another client can create the same name again. Names that Logkeep writes
once have one version and no marker, or another client was there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from logkeep.errors import LogkeepError
from logkeep.model.plurals import plural
from logkeep.store.address import Address, StoreKind, parse_address
from logkeep.store.buckets.bucket_requests import BucketRequests, BucketUnknown

_NO_LOCK = "ObjectLockConfigurationNotFoundError"


class Versioning(StrEnum):
    """Whether a bucket keeps earlier versions of an object."""

    ON = "on"
    SUSPENDED = "suspended"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BucketProtection:
    """What keeps objects of a bucket from being lost. `why`: the reason if it is unknown."""

    versioning: Versioning
    locked: bool = False
    lock_mode: str = ""
    """`GOVERNANCE` or `COMPLIANCE`, if new objects are locked by default."""
    lock_period: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.versioning is Versioning.UNKNOWN:
            return f"not known: {self.why}"
        if not self.locked:
            return f"versioning is {self.versioning}, and there is no object lock"
        if not self.lock_mode:
            return f"versioning is {self.versioning}, and object lock is possible, but no default retention is set"
        return f"versioning is {self.versioning}, and new objects are locked for {self.lock_period} ({self.lock_mode})"


@dataclass
class NameHistory:
    """All versions of one name: those that differ, and whether it was deleted at any time."""

    name: str
    contents: set[tuple[str, int]] = field(default_factory=set)
    """ETag and size. A put that was repeated after a lost answer has the same content twice."""
    deleted: bool = False

    @property
    def written_once(self) -> bool:
        return len(self.contents) <= 1 and not self.deleted


def bucket_protection(address: Address) -> BucketProtection:
    """What the bucket reports of its protection; UNKNOWN if it is not one of S3, or does not answer."""
    try:
        return _protection(BucketRequests(address))
    except BucketUnknown as error:
        return BucketProtection(Versioning.UNKNOWN, why=str(error))


def _protection(bucket: BucketRequests) -> BucketProtection:
    status = (bucket.ask("get_bucket_versioning") or {}).get("Status", "")
    versioning = {"Enabled": Versioning.ON, "Suspended": Versioning.SUSPENDED}.get(status, Versioning.OFF)
    if versioning is Versioning.OFF:
        return BucketProtection(versioning)
    try:
        answer = bucket.ask("get_object_lock_configuration", _NO_LOCK) or {}
    except BucketUnknown:  # not every server has locks
        answer = {}
    lock = answer.get("ObjectLockConfiguration") or {}
    kept = (lock.get("Rule") or {}).get("DefaultRetention") or {}
    mode = str(kept.get("Mode", ""))
    return BucketProtection(versioning, lock.get("ObjectLockEnabled") == "Enabled", mode, _period(kept))


def _period(kept: dict[str, Any]) -> str:
    years, days = kept.get("Years") or 0, kept.get("Days") or 0
    return plural(years, "year") if years else plural(days, "day")


def versioned_address(url: str) -> Address | None:
    """The address of a bucket that keeps versions, or kept them once; None for every other store.

    Raises BucketUnknown if an S3 bucket does not report it.
    """
    try:
        address = parse_address(url)
    except LogkeepError:
        return None  # a store in memory
    if address.kind is not StoreKind.S3:
        return None
    kept = _protection(BucketRequests(address)).versioning in {Versioning.ON, Versioning.SUSPENDED}
    return address if kept else None


def name_histories(address: Address, prefixes: Iterable[str]) -> Iterator[NameHistory]:
    """The history of every name below these prefixes, deleted ones too. Raises BucketUnknown."""
    bucket, root = BucketRequests(address), f"{address.prefix}/" if address.prefix else ""
    for prefix in prefixes:
        found: defaultdict[str, NameHistory] = defaultdict(lambda: NameHistory(""))
        for page in bucket.pages("list_object_versions", Prefix=root + prefix):
            for version in page.get("Versions", []):
                found[version["Key"]].contents.add((str(version.get("ETag", "")), int(version.get("Size", 0))))
            for marker in page.get("DeleteMarkers", []):
                found[marker["Key"]].deleted = True
        for key, history in found.items():
            history.name = key.removeprefix(root)
            yield history

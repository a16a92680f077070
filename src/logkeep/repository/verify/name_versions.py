"""Finds write-once names that were written again or deleted, in a bucket that keeps versions.

A lock or a policy keeps versions, not names: a client that may delete can hide a commit under a delete marker and
create another one. Commits are never deleted, so a marker on any of them is reported. Other objects are deleted by
garbage collection, so only those that the backup needs are checked. A bucket without versions shows nothing of this.
"""

import shlex
from collections.abc import Iterable

from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.repository.backups.content import served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.parts import SegmentTable, objects
from logkeep.store.address import Address
from logkeep.store.buckets.bucket_requests import BucketUnknown
from logkeep.store.buckets.versions import NameHistory, name_histories, versioned_address

REWRITTEN, DELETED, UNREAD = "name-rewritten", "name-deleted", "versions-unread"
DOUBTS = frozenset({REWRITTEN, DELETED})
"""Findings after which a good verdict still needs attention."""


def versioned_bucket(url: str) -> tuple[Address | None, list[Finding]]:
    """The address of the store if it keeps versions, and a note if that is not known."""
    try:
        return versioned_address(url), []
    except BucketUnknown as error:
        what = f"whether the bucket keeps versions is not known: {error}"
        remedy = "with boto3 installed and s3:GetBucketVersioning allowed, verify sees names that were written again"
        return None, [Finding(code=UNREAD, severity=Severity.NOTE, where=url, what=what, remedy=remedy)]


def commit_findings(address: Address, place: SourceRef) -> list[Finding]:
    """Findings about the names of all commits, also of those that a delete marker hides."""
    return _findings(address, {layout.commits(place.source)}, None)


def backup_findings(
    address: Address, place: SourceRef, folded: Folded, entry: BackupEntry, rows: SegmentTable
) -> list[Finding]:
    """Findings about the names of the manifest, the parts and the segments of a backup. Raises Damaged if the manifest
    is unreadable."""
    names = {layout.manifest(place.source, BackupId(entry.id), entry.manifest.token)}
    names |= {layout.part(place.source, ref.token) for ref in served_parts(read_manifest(place, entry), folded)}
    names |= {name for _, name, _, _ in objects(rows, place.source)}
    return _findings(address, {name.rpartition("/")[0] + "/" for name in names}, names)


def _findings(address: Address, prefixes: Iterable[str], names: set[str] | None) -> list[Finding]:
    """`names`: those to check; None for all below the prefixes."""
    found: list[Finding] = []
    try:
        for history in name_histories(address, sorted(prefixes)):
            if not history.written_once and (names is None or history.name in names):
                found.append(_finding(address, history))
    except BucketUnknown as error:
        what = f"the bucket keeps versions, but they cannot be listed: {error}"
        remedy = "allow s3:ListBucketVersions to see whether write-once names were written again"
        found.append(Finding(code=UNREAD, severity=Severity.NOTE, where=address.url, what=what, remedy=remedy))
    return found


def _finding(address: Address, history: NameHistory) -> Finding:
    count = len(history.contents)
    what = f"written once by Logkeep, it has {count} versions that differ" if count > 1 else "it was deleted"
    if count > 1 and history.deleted:
        what += " and was deleted in between"
    return Finding(
        code=REWRITTEN if count > 1 else DELETED,
        severity=Severity.WARNING,
        where=history.name,
        what=what,
        remedy=f"{_list_command(address, history.name)} shows its versions; put the oldest back if the others are not "
        "yours, and find out who can write and delete in this bucket",
    )


def _list_command(address: Address, name: str) -> str:
    key = f"{address.prefix}/{name}" if address.prefix else name
    endpoint = ["--endpoint-url", address.endpoint] if address.endpoint else []
    words = ["aws", "s3api", "list-object-versions", "--bucket", address.bucket, *endpoint, "--prefix", key]
    return shlex.join(words)

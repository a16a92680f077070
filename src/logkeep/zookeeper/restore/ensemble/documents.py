"""The documents of an ensemble's restore: the survey of each host, and the plan that is applied on every host.

Both are small JSON files that operators copy between hosts. They hold no secrets, and all values are checked again
before use. Format: `docs/formats/zookeeper-restore.md`.
"""

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.zookeeper.restore.values import Form, Sessions

_LARGEST_BYTES = 1 << 20
Zxid = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Hexadecimal = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{1,64}$")]


class MemberSurvey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state of one member, read from its directories, and from its server if it runs."""

    member: str
    data_dir: str
    log_dir: str
    host: str
    snapshots: Count
    logs: Count
    highest_zxid: Zxid
    epochs: tuple[Epoch, ...]
    fingerprint: Hexadecimal
    """Of the names, sizes and times of its files: they must be unchanged when the plan is applied."""
    running: tuple[str, ...]
    """Processes and servers that used the directories."""
    unchecked: tuple[str, ...]
    """What could not be checked about running servers."""
    raised_by: tuple[str, ...] = ()
    """Files beside `version-2` with higher numbers than all files in it."""
    directory: tuple[int, ...] | None = None
    """Device, inode and file system of `data_dir`; None in a survey of an earlier version."""


class HostSurvey(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="restore-survey-1"
):
    """All members of the ensemble on one host."""

    machine: str
    """The host's name, which another host may have too."""
    machine_id: str = ""
    """A hash of `/etc/machine-id`; empty where there is none."""
    boot_id: str = ""
    """A hash of the kernel's boot id: containers of one host have the same."""
    taken: str
    members: Annotated[tuple[MemberSurvey, ...], msgspec.Meta(min_length=1, max_length=255)]


class PlannedMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member that the plan was made for."""

    member: str
    machine: str
    data_dir: str
    log_dir: str
    fingerprint: Hexadecimal


class AgreedPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="restore-plan-1"):
    """The plan for every member: one tree, one epoch."""

    made: str
    source: str
    backup: str
    zxid: Zxid
    named_zxid: Zxid
    epoch: Epoch
    sessions: Sessions
    form: Form
    believe: bool
    accept_mismatch: str
    """The reason to restore a tree that digests contradict; empty where none do, or it is not accepted."""
    nodes: Count
    digest: Hexadecimal
    """Of the restored tree: every host must compute the same one."""
    members: Annotated[tuple[PlannedMember, ...], msgspec.Meta(min_length=1, max_length=255)]


Document = HostSurvey | AgreedPlan
DocumentT = TypeVar("DocumentT", HostSurvey, AgreedPlan)
_NAMES = {HostSurvey: "a survey of a host", AgreedPlan: "a plan for all members"}
_MADE_BY = {
    HostSurvey: "`logkeep zookeeper restore survey` writes one",
    AgreedPlan: "`logkeep zookeeper restore plan` writes one",
}


def encoded(document: Document) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def decoded(content: bytes, kind: type[DocumentT], name: str) -> DocumentT:
    """Raises Damaged for anything else, also for a document of the other kind."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"this is not {_NAMES[kind]}: {error}", subject=name, remedy=_MADE_BY[kind]) from error


def read_document(path: Path, kind: type[DocumentT]) -> DocumentT:
    """Raises UsageError for a file that cannot be read, Damaged for one that is something else."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        what = (error.strerror or "it cannot be read").lower()
        raise UsageError(what, subject=str(path), remedy=f"name {_NAMES[kind]}: {_MADE_BY[kind]}") from error
    if len(content) > _LARGEST_BYTES:
        raise Damaged(f"this is not {_NAMES[kind]}: it is too large", subject=str(path), remedy=_MADE_BY[kind])
    return decoded(content, kind, str(path))

"""What goes from host to host when an ensemble is restored: surveys to where the plan is made, the plan to all hosts.

Both are small JSON files that people carry. They hold no secrets, and everything in them is checked again where it is
used: `docs/formats/zookeeper-restore.md` describes them.
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
    """How far one member got, by its directories and by itself if it runs."""

    member: str
    data_dir: str
    log_dir: str
    host: str
    snapshots: Count
    logs: Count
    highest_zxid: Zxid
    epochs: tuple[Epoch, ...]
    fingerprint: Hexadecimal
    """Of the names, sizes and times of its files: whether they are still the same when the plan is carried out."""
    running: tuple[str, ...]
    """Who used the directories."""
    unchecked: tuple[str, ...]
    """What could not be found out about that."""
    raised_by: tuple[str, ...] = ()
    """Files beside `version-2` that hold later numbers than all in it, where there are such."""
    directory: tuple[int, ...] | None = None
    """Device, inode and file system of `data_dir`; None in a survey that does not tell."""


class HostSurvey(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="restore-survey-1"
):
    """All members of the ensemble on one host."""

    machine: str
    """Its name, which another host may have too."""
    machine_id: str = ""
    """A hash of `/etc/machine-id`; empty where there is none."""
    boot_id: str = ""
    """A hash of what the kernel calls this boot: containers of one host have the same."""
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
    """What every member gets: one tree, one epoch."""

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
    """Why a tree is restored that digests contradict; empty where none do, or it is not accepted."""
    nodes: Count
    digest: Hexadecimal
    """Of the tree as it is written: every host must come to the same one."""
    members: Annotated[tuple[PlannedMember, ...], msgspec.Meta(min_length=1, max_length=255)]


Document = HostSurvey | AgreedPlan
DocumentT = TypeVar("DocumentT", HostSurvey, AgreedPlan)
_CALLED = {HostSurvey: "a survey of a host", AgreedPlan: "a plan for all members"}
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
        raise Damaged(f"this is not {_CALLED[kind]}: {error}", subject=name, remedy=_MADE_BY[kind]) from error


def read_document(path: Path, kind: type[DocumentT]) -> DocumentT:
    """Raises UsageError for a file that cannot be read, Damaged for one that is something else."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
    except OSError as error:
        what = (error.strerror or "it cannot be read").lower()
        raise UsageError(what, subject=str(path), remedy=f"name {_CALLED[kind]}: {_MADE_BY[kind]}") from error
    if len(content) > _LARGEST_BYTES:
        raise Damaged(f"this is not {_CALLED[kind]}: it is too large", subject=str(path), remedy=_MADE_BY[kind])
    return decoded(content, kind, str(path))

"""The identity of a surveyed host and directory, beyond their names: two hosts may have the same name or path.

Within one boot of one kernel, file system and inode identify a directory, in containers too. Across boots only the
machine's id shows whether it is the same machine. Ids are stored as hashes: the plain ids are not needed.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from logkeep.directories.folder import Folder
from logkeep.zookeeper.restore.ensemble.documents import HostSurvey, MemberSurvey

_MACHINE_ID: Final = Path("/etc/machine-id")
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_ID: Final = re.compile(r"[0-9a-f]{32}")


class HostIdentity(NamedTuple):
    """Empty where the system does not report an id."""

    machine_id: str = ""
    boot_id: str = ""


def this_host() -> HostIdentity:
    return HostIdentity(_hashed(_MACHINE_ID), _hashed(_BOOT_ID))


def directory_id(folder: Folder) -> tuple[int, ...]:
    """With the id of its file system: disks that are mounted one after the other have the same device and inode."""
    return folder.status.st_dev, folder.status.st_ino, os.fstatvfs(folder.descriptor).f_fsid


def is_one_directory(one: tuple[HostSurvey, MemberSurvey], other: tuple[HostSurvey, MemberSurvey]) -> bool:
    """Whether two surveyed members are the same one. Names decide where the ids are not known. Pure."""
    (host, member), (host2, member2) = one, other
    same_path = (host.machine, member.data_dir) == (host2.machine, member2.data_dir)
    if host.boot_id and host.boot_id == host2.boot_id and member.directory and member2.directory:
        # A member that was copied to a new disk between two surveys has a new inode, and is the same member.
        return member.directory == member2.directory or (same_path and member.member == member2.member)
    if host.machine_id and host2.machine_id and host.machine_id != host2.machine_id:
        return False
    return same_path


def _hashed(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii", errors="replace").strip().replace("-", "")
    except OSError:
        return ""
    return hashlib.sha256(b"logkeep survey " + text.encode()).hexdigest()[:32] if _ID.fullmatch(text) else ""

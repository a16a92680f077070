"""Whether the files that a restore makes keep the rights of their group, and the finding where they do not.

Only root, or a member of a group, can give a file to it. Another user's new file keeps that user's own group, which
must not get rights that the old group had: `FileWork.set_owner` leaves them out.
"""

from collections.abc import Iterator

from logkeep.directories.folder import Folder
from logkeep.model.findings import Finding, Severity

GROUP_BITS = 0o070


def dropped_group_rights(above: Folder, where: str, gid: int, mode: int) -> Iterator[Finding]:
    """For new files in `above` that get this group and one of the bits of this mode."""
    if mode & GROUP_BITS and not above.worker.gives_group(gid):
        yield Finding(
            code="group-rights-dropped",
            severity=Severity.NOTE,
            where=where,
            what=f"the owner of the directory is not in group {gid}: restored files get no rights of a group",
            remedy="add the owner to the group and restore again, or set the group afterwards: chgrp, chmod g+r",
        )

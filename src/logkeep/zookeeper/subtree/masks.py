"""ACLs as servers show them to those who may not change them: the hashes of passwords are left out. Pure."""

from typing import Final

from logkeep.formats.zookeeper.transactions import Acl, Acls

_DIGEST: Final = b"digest"
_HIDDEN: Final = b"x"


def masked(acls: Acls) -> Acls:
    return tuple(_masked(acl) if acl.scheme == _DIGEST else acl for acl in acls)


def is_masked(acls: Acls) -> bool:
    return any(acl.scheme == _DIGEST and acl.id.rpartition(b":")[2] == _HIDDEN for acl in acls)


def _masked(acl: Acl) -> Acl:
    user, colon, _ = acl.id.partition(b":")
    return Acl(acl.perms, acl.scheme, user + colon + _HIDDEN if colon else acl.id)

"""The seal of `backup_info.json`: a hash over what it says, so that a changed character is found. Pure.

Over everything but the seal itself and `validation`, which every verification writes anew. Documents of format 1.0 have
none; from 1.1 on one that has lost it is not whole, so that no character of the seal's own name can be spared.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

SEAL: Final = "seal"
WITHOUT_SEAL: Final = "1.0"
_OUTSIDE: Final = frozenset({SEAL, "validation"})


def seal_of(document: Mapping[str, Any]) -> str:
    covered = {name: value for name, value in document.items() if name not in _OUTSIDE}
    return f"sha256:{hashlib.sha256(msgspec.json.encode(covered, order='sorted')).hexdigest()}"


def is_intact(document: Mapping[str, Any]) -> bool:
    """Also true for a document that never had a seal: then nobody can tell."""
    if SEAL not in document:
        return document.get("version") == WITHOUT_SEAL
    return bool(document[SEAL] == seal_of(document))


def sealed_again(document: dict[str, Any]) -> dict[str, Any]:
    """After a change of ours to one that was intact. Where no seal was there is none: it would vouch for too much."""
    return {**document, SEAL: seal_of(document)} if SEAL in document else document

"""Sealed documents: one line of JSON, and one line with its SHA-256.

    {"type":"commit","version":1,...}\n
    {"sha256":"<hex of line 1 with its newline>"}\n

A document that was truncated, damaged or edited is refused; so is one that was copied to another name, because line 1
names its type, repository, source and identity. Readers are strict: unknown fields, wrong types and anything above the
size limit of its type are damage. A newer `version` is `FormatTooNew`, not damage.
"""

import hashlib
from threading import Lock
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from logkeep.errors import AlreadyExists, BackupFailed, Damaged, FormatTooNew, ObjectMissing
from logkeep.store.base import Store

MIB = 1024 * 1024


class Document(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of everything that is stored as a sealed document."""

    limit: ClassVar[int] = MIB
    """Larger documents are refused."""
    newest: ClassVar[int] = 1
    """The newest version of this type that this release reads."""

    version: int = 1
    repository: str
    """The id of the repository it belongs to."""


class SourceDocument(Document, frozen=True, kw_only=True):
    """Base of the documents below one source."""

    source: str


class _Opening(msgspec.Struct):
    """Enough of line 1 to distinguish a newer format from damage."""

    type: str
    version: int


class _Seal(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str


DocumentT = TypeVar("DocumentT", bound=Document)
OwnedT = TypeVar("OwnedT", bound=SourceDocument)
_encoder = msgspec.json.Encoder(order="deterministic")


def seal(document: Document) -> bytes:
    """The bytes of a document as they are stored. Raises BackupFailed if it is larger than readers accept."""
    line = _encoder.encode(document) + b"\n"
    data = line + b'{"sha256":"' + hashlib.sha256(line).hexdigest().encode() + b'"}\n'
    if len(data) > document.limit:
        raise BackupFailed(
            f"the document would have {len(data)} bytes; the limit is {document.limit}",
            subject=str(document.__struct_config__.tag),
            remedy="back up fewer topics into one source, or use larger segments",
        )
    return data


def seal_of(data: bytes) -> str:
    """The hash in line 2, by which other documents refer to this one."""
    return _split(data, "document")[1]


def _decoder(kind: type[DocumentT]) -> msgspec.json.Decoder[DocumentT]:
    """One thread at a time makes decoders: msgspec crashes the process where two learn a type at the same moment."""
    with _making:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
        found: msgspec.json.Decoder[DocumentT] = _decoders[kind]
        return found


def unseal(data: bytes, kind: type[DocumentT], where: str) -> DocumentT:
    """Open a document of a known type. Raises only Damaged or FormatTooNew, whatever the bytes are."""
    line, expected = _split(data, where)
    if hashlib.sha256(line).hexdigest() != expected:
        raise Damaged("the document does not match its seal", subject=where)
    try:
        opening = _OPENING.decode(line)
        tag = kind.__struct_config__.tag
        if opening.type != tag:
            raise Damaged(f"this is a {opening.type!r} document instead of a {tag!r}", subject=where)
        if opening.version > kind.newest:
            what = f"the {tag} document has version {opening.version}; this release reads {kind.newest}"
            raise FormatTooNew(what, subject=where)
        return _decoder(kind).decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"the document does not follow its schema ({error})", subject=where) from error


_OPENING, _SEAL = msgspec.json.Decoder(_Opening), msgspec.json.Decoder(_Seal)
_making = Lock()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def _split(data: bytes, where: str) -> tuple[bytes, str]:
    line, newline, rest = data.partition(b"\n")
    try:
        sealed = _SEAL.decode(rest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged("the document is truncated or has no seal", subject=where) from error
    if not newline or not rest.endswith(b"}\n"):
        raise Damaged("the document is truncated", subject=where)
    return line + newline, sealed.sha256


def put_own(store: Store, name: str, data: bytes) -> None:
    """Put a document with a random run id under a new name. Raises AlreadyExists if another one is there.

    Our own bytes under this name mean that the store's acknowledgement was lost: that is success.
    """
    try:
        store.put_new(name, data)
    except AlreadyExists:
        if not _is_ours(store, name, data):
            raise


def _is_ours(store: Store, name: str, data: bytes) -> bool:
    try:
        return store.get(name, len(data)) == data
    except Damaged:  # larger than ours
        return False


class PinnedObject(Protocol):
    """What a document states about another object: its size and its hash."""

    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...


def read_pinned(store: Store, name: str, ref: PinnedObject, limit: int, *, missing: str, changed: str) -> bytes:
    """The object that a document pins. Raises Damaged with one of these reasons."""
    try:
        data = store.get(name, limit)
    except ObjectMissing as error:
        raise Damaged(missing, subject=name) from error
    if len(data) != ref.size or hashlib.sha256(data).hexdigest() != ref.sha256:
        raise Damaged(changed, subject=name)
    return data


def read(store: Store, name: str, kind: type[DocumentT], repository: str) -> DocumentT:
    """Read and open a document of this repository."""
    return open_in_place(store.get(name, kind.limit), name, kind, repository)


def read_versioned(
    store: Store, name: str, kind: type[OwnedT], repository: str, source: str
) -> tuple[OwnedT, str] | None:
    """A document that is replaced under one name, and its version; None before the first."""
    try:
        data, info = store.get_with_info(name, kind.limit)
    except ObjectMissing:
        return None
    document = open_in_place(data, name, kind, repository)
    if document.source != source:
        raise Damaged(f"the {kind.__struct_config__.tag} belongs to another source", subject=name)
    return document, info.version


def open_in_place(data: bytes, name: str, kind: type[DocumentT], repository: str) -> DocumentT:
    document = unseal(data, kind, name)
    if document.repository != repository:
        raise Damaged("the document belongs to another repository", subject=name)
    return document

"""Rewrites the stored documents of a repository with hostile strings, every seal, size and reference right again.

Documents refer to each other by hashes, so they are rewritten in the order of their references.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import logkeep.checkpoint.zeebe.repo.record
import logkeep.kafka.record.scram
import logkeep.kafka.registry.attachment
import logkeep.repository.upkeep.garbage
import logkeep.zookeeper.repo.record
from logkeep.errors import Damaged
from logkeep.repository import restores
from logkeep.repository.backups import catch_ups
from logkeep.repository.chain import format as formats
from logkeep.repository.chain import freshness, lease, roles
from logkeep.repository.chain.documents import Document
from tests.support.hostile.corpus import TEXT

LOADED = (logkeep.kafka.record.scram, logkeep.kafka.registry.attachment, logkeep.repository.upkeep.garbage,
          logkeep.checkpoint.zeebe.repo.record, logkeep.zookeeper.repo.record,
          restores, formats, freshness, lease, roles, catch_ups)  # fmt: skip
"""Modules that define document types."""
Choice = Callable[[str, str, str], bool]
"""Whether to change a text, by the document's type, its field and the text."""

_IDENTITY = frozenset(
    {
        "previous",
        "head",
        "seal",
        "type",
        "repository",
        "source",
        "kind",
        "run",
        "sha256",
        "token",
        "role",
        "step",
        "catch_up",
        "level",
        "verdict",
        "origin",
        "export",
    }
)
_OF_FILES = frozenset({"member", "name", "history", "digest", "snapshot_id"})
"""Of the records of an ensemble and of Zeebe: they name files."""
_MOMENT_OR_HASH = re.compile(r"\d{4}-\d\d-\d\dT.*|[0-9a-f]{16,64}")


def harmless(kind: str, field: str, text: str) -> bool:
    """A text that no reader compares or parses: with all of them changed the repository can still be read."""
    names_file = kind in {"zookeeper-ensemble", "zeebe-backup"} and field in _OF_FILES
    return field not in _IDENTITY and not names_file and not _MOMENT_OR_HASH.fullmatch(text)


_IN_LOGS = {"ApplicationDocument", "CheckpointDocument", "HistoryDocument"}
"""In the data directory, the log and the topics of an application, not in a repository."""


def kinds() -> dict[str, type[Document]]:
    """The type of every stored document, by its tag."""
    found: dict[str, type[Document]] = {}
    waiting: list[type[Document]] = [Document]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__name__ in _IN_LOGS:
            continue
        if isinstance(tag := kind.__struct_config__.tag, str) and tag != kind.__name__:  # its name: a base class
            found[tag] = kind
    return found


def texts(root: Path) -> set[tuple[str, str]]:
    """Every text of the documents in a repository that a schema lets be anything, by type and field."""
    everything = Rewriter(root, lambda _kind, _field, _text: True)
    for old in everything.documents():
        _changed(old, old["type"], lambda *_: True, TEXT, everything.changed)
    return everything.changed


class Rewriter:
    """All documents of one repository."""

    def __init__(self, root: Path, choose: Choice = harmless, text: str = TEXT) -> None:
        """`text` is added to each text that is chosen."""
        self._choose, self._text = choose, text
        self._old = {path: path.read_bytes() for path in root.rglob("*.json")}
        self._hashes: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self.changed: set[tuple[str, str]] = set()
        """Type and field of each text that was changed."""
        self.kinds = {document["type"] for document in self.documents()}

    def documents(self) -> Iterator[dict[str, Any]]:
        """As they were."""
        for data in self._old.values():
            yield json.loads(data.split(b"\n")[0])

    def rewrite(self) -> "Rewriter":
        waiting = dict(self._old)
        while waiting:
            pinned = {key for data in waiting.values() for key in _pins(data)}
            ready = [p for p, data in waiting.items() if not (_mentions(data) & pinned - _pins(data))]
            assert ready, f"documents refer to each other in a circle: {sorted(waiting)}"
            for path in ready:
                self._rewrite(path, waiting.pop(path))
        return self

    def _rewrite(self, path: Path, old: bytes) -> None:
        document = json.loads(old.split(b"\n")[0])
        kind = document["type"]
        before = json.dumps(document)
        document = self._pinned_again(_changed(document, kind, self._choose, self._text, self.changed))
        if json.dumps(document) == before:
            return
        line = msgspec.json.encode(document) + b"\n"
        new = line + b'{"sha256":"%s"}\n' % hashlib.sha256(line).hexdigest().encode()
        path.chmod(0o600)
        path.write_bytes(new)
        hashes = {_seal(old): _seal(new), hashlib.sha256(old).hexdigest(): hashlib.sha256(new).hexdigest()}
        self._hashes |= hashes
        self._sizes |= dict.fromkeys(hashes, len(new))

    def _pinned_again(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "size" in value and value.get("sha256") in self._sizes:
                value = {**value, "size": self._sizes[value["sha256"]]}
            return {name: self._pinned_again(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._pinned_again(inner) for inner in value]
        return self._hashes.get(value, value) if isinstance(value, str) else value


def _pins(data: bytes) -> set[str]:
    return {_seal(data), hashlib.sha256(data).hexdigest()}


def _mentions(data: bytes) -> set[str]:
    return set(re.findall(r"[0-9a-f]{64}", data.split(b"\n")[0].decode()))


def _seal(data: bytes) -> str:
    return str(json.loads(data.split(b"\n")[1])["sha256"])


def _changed(document: Any, kind: str, choose: Choice, text: str, changed: set[tuple[str, str]] | None = None) -> Any:
    """The document with each chosen text made hostile that its schema lets be anything."""
    places = [place for place in _places(document, ()) if choose(kind, _field(place), _at(document, place))]
    for place in places:
        tried = _replaced(document, place, _at(document, place) + text)
        try:
            msgspec.json.decode(msgspec.json.encode(tried), type=kinds()[kind])
        except (msgspec.MsgspecError, ValueError, Damaged):
            continue
        document = tried
        if changed is not None:
            changed.add((kind, _field(place)))
    return document


def _places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*place, key))


def _field(place: tuple[Any, ...]) -> str:
    return next((str(key) for key in reversed(place) if isinstance(key, str)), "")


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _replaced(value: Any, place: tuple[Any, ...], text: str) -> Any:
    if not place:
        return text
    key, *rest = place
    if isinstance(value, dict):
        return {**value, key: _replaced(value[key], tuple(rest), text)}
    return [*value[:key], _replaced(value[key], tuple(rest), text), *value[key + 1 :]]

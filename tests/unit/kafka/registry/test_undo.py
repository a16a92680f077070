"""A restore that does not end well deletes what it registered, and names what it could not delete."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest

from logkeep.cli.frame.signals import SigtermReceived
from logkeep.errors import RestoreFailed
from logkeep.kafka.registry import restore
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi
from logkeep.kafka.registry.restore import restore_by_api
from logkeep.kafka.registry.restore_plan import RESERVED
from logkeep.kafka.registry.values import ArchivedRegistry, SubjectSetting
from tests.support.kafka.registry_steps import karapace_registry, settings_of
from tests.support.servers.recorded_registry import Exchange, RecordedRegistry, serving


@dataclass
class LiveRegistry:
    """A server that keeps versions, levels and modes, and forbids changes in the mode READONLY as Confluent's does."""

    forget: str = ""
    """A subject that it answers for with success and does not keep."""
    versions: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    levels: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=lambda: {"": "READWRITE"})

    @contextmanager
    def serving(self) -> Iterator[tuple[ConfluentApi, "LiveRegistry"]]:
        with serving(self._answer) as server, RegistryClient(settings_of(server.url)) as client:
            yield ConfluentApi(client, ""), self

    def _answer(self, method: str, path: str, body: bytes, _headers: object) -> Exchange:
        parts = urlsplit(path)
        kind, subject, *more = (*map(unquote, parts.path.strip("/").split("/")), "", "")[:4]
        try:
            found = self._do(method, kind, subject, more[-1] or more[0], json.loads(body or b"{}"), parts.query)
        except KeyError:
            return Exchange(method, path, 404, "application/json", '{"message":"not found"}')
        except PermissionError:
            return Exchange(method, path, 422, "application/json", '{"message":"read-only"}')
        return Exchange(method, path, 200, "application/json", json.dumps(found))

    def _do(self, method: str, kind: str, subject: str, last: str, sent: dict[str, Any], query: str) -> Any:
        if kind in {"mode", "config"}:
            return self._setting(method, kind, subject, sent)
        if kind == "schemas":
            return next(one for every in self.versions.values() for one in every.values() if str(one["id"]) == last)
        if method != "GET":
            self._writable(subject)
        if method == "POST" and subject != self.forget:
            self.versions.setdefault(subject, {})[sent["version"]] = {**sent, "subject": subject}
        if method == "POST":
            return {"id": sent["id"]}
        if method == "DELETE":
            return self._delete(subject, query)
        if not subject:
            return [each for each in self.versions if query or each not in self.deleted]
        return self.versions[subject][int(last)] if last.isdigit() else list(self.versions[subject])

    def _setting(self, method: str, kind: str, subject: str, sent: dict[str, Any]) -> Any:
        place = self.modes if kind == "mode" else self.levels
        if method == "PUT":
            if kind == "config":
                self._writable(subject)
            place[subject] = next(iter(sent.values()))
        return {"mode" if kind == "mode" else "compatibilityLevel": place[subject]}

    def _delete(self, subject: str, query: str) -> Any:
        if query:
            del self.versions[subject]
        self.deleted.add(subject)
        return []

    def _writable(self, subject: str) -> None:
        if "READONLY" in (self.modes[""], self.modes.get(subject)):
            raise PermissionError


def _failed(*, deletes: bool, register: int = 500) -> tuple[RestoreFailed, RecordedRegistry]:
    """What a server does that takes the mode, has one subject, and fails when a schema is registered."""
    subjects = ["orders-value", "foreign"]

    def answer(method: str, path: str, *_: object) -> Exchange:
        status, found = 200, "{}"
        if path.startswith("/mode"):
            found = '{"mode":"READWRITE"}'
        elif method == "POST":
            status = register
        elif method == "DELETE":
            status = 200 if deletes else 422
            if deletes and "permanent" in path:
                subjects.remove("orders-value")
        elif path.startswith("/subjects"):
            found = json.dumps(subjects)
        return Exchange(method, path, status, "application/json", found)

    with serving(answer) as registry, RegistryClient(settings_of(registry.url)) as client:
        with pytest.raises(RestoreFailed) as failed:
            restore_by_api(ConfluentApi(client, ""), karapace_registry(), b"", print)
        return failed.value, registry


def test_only_subjects_of_the_archive_are_deleted() -> None:
    error, registry = _failed(deletes=True)
    assert registry.sent("DELETE") == ["/subjects/orders-value", "/subjects/orders-value?permanent=true"]
    assert error.what.endswith("; what was registered is deleted again")
    assert error.exit_code == 30


def test_what_cannot_be_deleted_is_named() -> None:
    error, _ = _failed(deletes=False)
    assert "these changes remain: orders-value" in error.what


def test_a_signal_undoes_the_restore_and_stays_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise SigtermReceived

    monkeypatch.setattr(restore, "_register_one", interrupt)
    said: list[str] = []
    with LiveRegistry().serving() as (api, registry):
        registry.versions["orders-value"] = {}
        with pytest.raises(SigtermReceived):
            restore_by_api(api, karapace_registry(), b"", said.append)
    assert [text.partition(": ")[2] for text in said] == [
        "the restore was interrupted; what was registered is deleted again"
    ]
    assert (registry.versions, registry.modes) == ({}, {"": "READWRITE"})


def _read_only() -> ArchivedRegistry:
    """With settings of a subject without versions."""
    return msgspec.structs.replace(
        karapace_registry(),
        compatibility=(SubjectSetting("NONE"), SubjectSetting("FULL", "no-versions")),
        modes=(SubjectSetting("READONLY"), SubjectSetting("READONLY", "same-value")),
    )


def test_a_registry_that_was_read_only_is_restored_so() -> None:
    with LiveRegistry().serving() as (api, registry):
        restore_by_api(api, _read_only(), b"", print)
    assert registry.modes == {"": "READONLY", "same-value": "READONLY"}
    assert registry.levels == {"": "NONE", "no-versions": "FULL"}
    assert registry.versions.keys() == {"orders-value", "pay-value", "same-value", RESERVED}


def test_a_read_only_registry_is_writable_before_its_subjects_are_deleted() -> None:
    missing = r"orders-value is missing.*; what was registered is deleted again"
    with (
        LiveRegistry(forget="orders-value").serving() as (api, registry),
        pytest.raises(RestoreFailed, match=missing),
    ):
        restore_by_api(api, _read_only(), b"", print)
    assert registry.versions == {}
    assert registry.modes == {"": "READWRITE", "same-value": "READWRITE"}

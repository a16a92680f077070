"""A restore that does not end well deletes what it registered, and names what it could not delete."""

import json

import pytest

from logkeep.errors import RestoreFailed
from logkeep.kafka.registry import restore
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi
from logkeep.kafka.registry.restore import restore_by_api
from tests.support.kafka.registry_steps import karapace_registry, settings_of
from tests.support.servers.recorded_registry import Exchange, RecordedRegistry, serving


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
            restore_by_api(ConfluentApi(client, ""), karapace_registry(), b"")
        return failed.value, registry


def test_only_subjects_of_the_archive_are_deleted() -> None:
    error, registry = _failed(deletes=True)
    assert registry.sent("DELETE") == ["/subjects/orders-value", "/subjects/orders-value?permanent=true"]
    assert error.what.endswith("; what was registered is deleted again")
    assert error.exit_code == 30


def test_what_cannot_be_deleted_is_named() -> None:
    error, _ = _failed(deletes=False)
    assert "these changes remain: orders-value" in error.what


def test_an_interrupted_restore_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(restore, "_register_one", interrupt)
    error, registry = _failed(deletes=True)
    assert error.what.startswith("the restore was interrupted")
    assert registry.sent("DELETE")

"""Capture, import and read-back against Apicurio 3.3.3: by its recorded answers, or with `make registry` by itself."""

from contextlib import AbstractContextManager

import msgspec
import pytest

from logkeep.errors import RestoreFailed, TargetUnsafe
from logkeep.kafka.registry.apicurio import open_api
from logkeep.kafka.registry.capture import CapturedRegistry, capture, capture_from, probe
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi
from logkeep.kafka.registry.restore import live_state, refuse_used, restore_by_api
from logkeep.kafka.registry.restore_plan import differences
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaReference
from tests.integration.kafka.registry.conftest import Answers
from tests.support.kafka.registry_steps import (
    PROTO,
    fill,
    fill_living,
    karapace_registry,
    register,
    settings_of,
)
from tests.support.servers.recorded_registry import RecordedRegistry, recorded


def filled(apicurio: Answers) -> AbstractContextManager[RecordedRegistry]:
    return apicurio("filled", fill)


def captured() -> CapturedRegistry:
    with recorded("filled") as registry:
        return capture(settings_of(registry.url))


def shifted() -> ArchivedRegistry:
    """The registry of Karapace, with larger ids."""
    found = karapace_registry()
    return msgspec.structs.replace(
        found,
        definitions=tuple(msgspec.structs.replace(d, id=d.id + 10) for d in found.definitions),
        versions=tuple(msgspec.structs.replace(v, id=v.id + 10) for v in found.versions),
        highest_id=found.highest_id + 10,
    )


def test_everything_is_captured(apicurio: Answers) -> None:
    with filled(apicurio) as registry:
        probe(settings_of(registry.url))
        found = capture(settings_of(registry.url)).registry
        assert capture(settings_of(f"{registry.url}/apis/ccompat/v7")).registry == found
    assert found.origin == "apicurio"
    versions = {(v.subject, v.version): v for v in found.versions}
    assert {at for at, v in versions.items() if v.deleted} == {("old-value", 1)}
    assert set(versions) >= {("customer", 1), ("orders-value", 1), ("orders-value", 2), ("json-value", 1)}
    assert not any(subject == "gone-value" for subject, _ in versions)
    assert [d.text for d in found.definitions if d.erased] == ['{"type":"record","name":"Gone","fields":[]}']
    assert versions["orders-value", 1].id == versions["orders-copy-value", 1].id
    order = found.find(versions["orders-value", 1].id)
    assert order is not None
    assert order.references == (SchemaReference("shop.Customer", "customer", 1),)
    payment = found.find(versions["payments-value", 1].id)
    assert payment is not None
    assert (payment.type, payment.text.split()) == ("PROTOBUF", PROTO.split())
    assert ("FULL", "orders-value") in {(s.value, s.subject) for s in found.compatibility}


def test_confluents_api_and_the_export_agree(apicurio: Answers) -> None:
    with apicurio("living", fill_living) as registry, RegistryClient(settings_of(registry.url)) as client:
        exported = capture_from(open_api(client)).registry
        read = capture_from(ConfluentApi(client, "/apis/ccompat/v7")).registry
    assert read.origin == "confluent"
    assert differences(exported, read) == ()
    assert differences(read, msgspec.structs.replace(exported, compatibility=read.compatibility)) == ()
    assert read.highest_id == exported.highest_id
    assert {d.type for d in read.definitions} == {"AVRO", "JSON", "PROTOBUF"}


def test_an_import_keeps_every_id_and_uses_none_again(apicurio: Answers) -> None:
    archive = captured()
    with apicurio("imported") as registry, RegistryClient(settings_of(registry.url)) as client:
        api = open_api(client)
        before = live_state(api, archive.registry)
        assert before.used_ids == 0
        assert not before.restored
        restore_by_api(api, archive.registry, archive.export, print)
        assert live_state(api, archive.registry).restored
        with pytest.raises(TargetUnsafe, match="has used ids"):
            refuse_used(live_state(api, karapace_registry()), registry.url)
        new = register(registry.url, "new-value", '{"type":"record","name":"New","fields":[]}')
        assert new > archive.registry.highest_id


def test_another_id_with_200_fails_the_restore_and_is_undone(apicurio: Answers) -> None:
    with apicurio("other-id") as registry, RegistryClient(settings_of(registry.url)) as client:
        api = open_api(client)
        assert live_state(api, shifted()).used_ids == 0
        with pytest.raises(RestoreFailed, match=r"the id 1 instead of 11; what was registered is deleted") as failed:
            restore_by_api(api, shifted(), b"", print)
        assert failed.value.exit_code == 30
        assert api.subjects() == []
    answers = [e for e in registry.exchanges if e.method == "POST"]
    assert answers
    assert {e.status for e in answers} == {200}, "the registry itself called it a success"


def test_equal_ids_by_chance_are_still_read_back(apicurio: Answers) -> None:
    """An empty registry gives the ids 1, 2, 3 as Karapace did."""
    archive = karapace_registry()
    with apicurio("same-ids") as registry, RegistryClient(settings_of(registry.url)) as client:
        api = open_api(client)
        assert live_state(api, archive).used_ids == 0
        restore_by_api(api, archive, b"", print)
        assert differences(archive, capture(settings_of(registry.url)).registry) == ()

"""What tests do to a schema registry through the API of Confluent, without the product."""

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from logkeep.kafka.registry.schemas_topic import registry_of
from logkeep.kafka.registry.settings import RegistrySettings, registry_address
from logkeep.kafka.registry.values import ArchivedRegistry

KARAPACE = Path(__file__).parents[2] / "integration" / "kafka" / "registry" / "schemas-topic.jsonl"
"""What a real Karapace 3.16.0 wrote into its topic."""
CUSTOMER = '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"id","type":"int"}]}'
ORDER = (
    '{"type":"record","name":"Order","namespace":"shop","fields":'
    '[{"name":"customer","type":"shop.Customer"},{"name":"amount","type":"int"}]}'
)
ORDER_2 = ORDER.replace('"int"}]}', '"int"},{"name":"note","type":"string","default":""}]}')
PROTO = 'syntax = "proto3";\nmessage Payment {\n  int32 amount = 1;\n}\n'
JSON_SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}}}'
REFERENCE = [{"name": "shop.Customer", "subject": "customer", "version": 1}]


def karapace_records() -> list[tuple[int, bytes, bytes]]:
    found = [json.loads(line) for line in KARAPACE.read_text().splitlines()]
    return [(each["offset"], each["key"].encode(), each["value"].encode()) for each in found]


def karapace_registry() -> ArchivedRegistry:
    return registry_of(karapace_records())


def settings_of(url: str) -> RegistrySettings:
    return RegistrySettings(registry_address(url))


def ask(url: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    there = urlsplit(url)
    connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=120)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, there.path + path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def register(url: str, subject: str, text: str, **more: Any) -> int:
    status, found = ask(f"{url}/apis/ccompat/v7", "POST", f"/subjects/{subject}/versions", {"schema": text, **more})
    assert status == 200, found
    return int(found["id"])


def fill_living(url: str) -> None:
    """Two versions, references, one id under two subjects, other types."""
    register(url, "customer", CUSTOMER)
    register(url, "orders-value", ORDER, references=REFERENCE)
    register(url, "orders-value", ORDER_2, references=REFERENCE)
    register(url, "orders-copy-value", ORDER, references=REFERENCE)
    register(url, "payments-value", PROTO, schemaType="PROTOBUF")
    register(url, "json-value", JSON_SCHEMA, schemaType="JSON")
    assert ask(f"{url}/apis/ccompat/v7", "PUT", "/config/orders-value", {"compatibility": "FULL"})[0] == 200


def fill(url: str) -> None:
    """The same, a deleted subject, and one that was deleted for good."""
    api = f"{url}/apis/ccompat/v7"
    register(url, "gone-value", '{"type":"record","name":"Gone","fields":[]}')
    fill_living(url)
    register(url, "old-value", '{"type":"string"}')
    assert ask(api, "DELETE", "/subjects/old-value")[0] == 200
    assert ask(api, "DELETE", "/subjects/gone-value")[0] == 200
    assert ask(api, "DELETE", "/subjects/gone-value?permanent=true")[0] == 200

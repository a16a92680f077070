"""A schema in JSON as registries write it: in the answers of their API, and in the records of their topic. Pure.

Fields without a use here are ignored: newer registries write more of them.
"""

from typing import Any

import msgspec

from logkeep.kafka.registry.values import AVRO, SchemaDefinition, SchemaId, SchemaReference, SchemaVersion


class WrittenReference(msgspec.Struct):
    name: str
    subject: str
    version: SchemaVersion


class WrittenSchema(msgspec.Struct, rename={"text": "schema", "type": "schemaType", "rules": "ruleSet"}, kw_only=True):
    id: SchemaId
    text: str
    type: str | None = None
    references: tuple[WrittenReference, ...] | None = None
    guid: str | None = None
    metadata: Any = None
    rules: Any = None

    @property
    def contract(self) -> bool:
        """Whether it has rules or metadata."""
        return bool(self.metadata or self.rules)

    def definition(self, context: str) -> SchemaDefinition:
        references = tuple(SchemaReference(r.name, r.subject, r.version) for r in self.references or ())
        return SchemaDefinition(self.id, self.text, self.type or AVRO, references, self.guid or "", context)

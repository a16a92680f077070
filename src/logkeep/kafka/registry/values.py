"""What an archive holds of a schema registry, as values.

Ids belong to a context of the registry: the empty text is the usual one. A subject of another context is written
`:.context:subject`, as Confluent's registry does.
"""

from typing import Annotated, Final, Literal

import msgspec

AVRO: Final = "AVRO"
"""The type of a schema that names none. Others are JSON and PROTOBUF, and in Apicurio's registry some more."""

RegistryOrigin = Literal["topic", "confluent", "apicurio"]
"""An archived topic, or an API from which a backup read the registry."""
SchemaId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
SchemaVersion = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]


class SchemaReference(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """A schema that another one uses under `name`."""

    name: str
    subject: str
    version: SchemaVersion


class SchemaDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an id means."""

    id: SchemaId
    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    guid: str = ""
    context: str = ""
    erased: bool = False
    """The registry deleted it for good. Only the archive can explain records with this id."""


class SubjectVersion(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True, omit_defaults=True):
    """A version of a subject, also one that was deleted but can still be read."""

    subject: str
    version: SchemaVersion
    id: SchemaId
    deleted: bool = False
    contract: bool = False
    """It has rules or metadata (Confluent's data contracts). Only a restore of the topic brings them back."""


class SubjectSetting(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True, omit_defaults=True):
    """A compatibility level or a mode."""

    value: str
    subject: str = ""
    """Empty: for all subjects."""


class ArchivedRegistry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    origin: RegistryOrigin
    definitions: tuple[SchemaDefinition, ...] = ()
    versions: tuple[SubjectVersion, ...] = ()
    compatibility: tuple[SubjectSetting, ...] = ()
    modes: tuple[SubjectSetting, ...] = ()
    highest_id: SchemaId = 0
    """The highest id ever seen, of deleted schemas too, in the usual context: a restored registry must not use it
    again."""
    unreadable: int = 0
    """Records of the topic that no rule explains. A restore of the topic restores them too."""
    first_unreadable: int = -1

    def find(self, schema_id: int, context: str = "") -> SchemaDefinition | None:
        """The meaning of an id."""
        return next((d for d in self.definitions if d.id == schema_id and d.context == context), None)

    def find_anywhere(self, schema_id: int, subject: str = "") -> SchemaDefinition | None:
        """The meaning of an id that a record names. It does not name a context: one counts in which a version of
        `subject` has the id, otherwise one that has this subject, otherwise any. Of several the usual one counts."""
        found = {d.context: d for d in self.definitions if d.id == schema_id}
        own = [v for v in self.versions if subject and name_of(v.subject) == subject]
        exact = {context_of(v.subject) for v in own if v.id == schema_id}
        homes = {context_of(v.subject) for v in own}
        wanted = exact & found.keys() or homes & found.keys() or found.keys()
        return found[next(iter(wanted))] if len(wanted) == 1 else found.get("") if "" in wanted else None

    def contexts_of_subjects(self) -> dict[str, tuple[str, ...]]:
        """The contexts of each subject, by its name, for subjects that are not only in the usual one."""
        found: dict[str, set[str]] = {}
        for version in self.versions:
            found.setdefault(name_of(version.subject), set()).add(context_of(version.subject))
        return {name: tuple(sorted(contexts)) for name, contexts in found.items() if contexts != {""}}

    def contexts_with(self, schema_id: int) -> tuple[str, ...]:
        """All contexts that have an id, but for the usual one."""
        return tuple(sorted({d.context for d in self.definitions if d.id == schema_id and d.context}))

    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v.subject for v in self.versions))

    def known_ids(self, context: str = "") -> frozenset[int]:
        """Ids that the registry could explain when it was archived."""
        return frozenset(d.id for d in self.definitions if d.context == context and not d.erased)


def name_of(subject: str) -> str:
    """The name of a subject without its context."""
    context = context_of(subject)
    return subject[len(context) + 2 :] if context else subject


def context_of(subject: str) -> str:
    """The context of a subject; empty for the usual one."""
    if subject.startswith(":."):
        context, colon, _ = subject[1:].partition(":")
        return context if colon and context != "." else ""
    return ""

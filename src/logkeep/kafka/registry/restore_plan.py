"""Decides how an archived registry is restored, and whether a live one equals it. Pure."""

import json
from collections.abc import Iterator
from typing import Final

from logkeep.errors import Damaged, UsageError
from logkeep.kafka.registry.references import in_order
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SubjectSetting,
    SubjectVersion,
    context_of,
)

RESERVED: Final = "logkeep-reserved-id"
"""A subject whose deleted schema has the highest id ever issued, so that no new schema gets it."""
READWRITE: Final = "READWRITE"

Registrations = tuple[tuple[SubjectVersion, SchemaDefinition], ...]


def registrations(registry: ArchivedRegistry) -> Registrations:
    """All versions with their schemas, each after those that it refers to. Raises Damaged for circular and missing
    references."""
    definitions = {(d.context, d.id): d for d in registry.definitions}
    wanted = dict[tuple[str, int], SchemaDefinition]()
    for version in sorted(registry.versions, key=lambda v: v.id):
        key = (context_of(version.subject), version.id)
        if key not in definitions:
            where = f"version {version.version} of {version.subject}"
            raise Damaged(f"its schema {version.id} is not archived", subject=where)
        wanted[key] = definitions[key]
    place = {(d.context, d.id): n for n, d in enumerate(in_order(registry, wanted.values()))}
    found = [(v, wanted[context_of(v.subject), v.id]) for v in registry.versions]
    return tuple(sorted(found, key=lambda each: (place[each[1].context, each[1].id], each[0])))


def deletions(registry: ArchivedRegistry) -> tuple[tuple[str, int | None], ...]:
    """What is deleted after everything was registered: whole subjects, and single versions of others."""
    kept = {v.subject for v in registry.versions if not v.deleted}
    gone = dict.fromkeys(v.subject for v in registry.versions if v.deleted and v.subject not in kept)
    single = [(v.subject, v.version) for v in registry.versions if v.deleted and v.subject in kept]
    return (*((subject, None) for subject in gone), *single)


def reserved_id(registry: ArchivedRegistry) -> int | None:
    """The highest id ever issued, if no schema that is registered has it."""
    highest = max((v.id for v in registry.versions if not context_of(v.subject)), default=0)
    return registry.highest_id if registry.highest_id > highest else None


def final_mode(registry: ArchivedRegistry) -> SubjectSetting:
    """The mode of a restored registry: the archived one, unless it is that of an import."""
    found = next((m.value for m in registry.modes if not m.subject), READWRITE)
    return SubjectSetting(READWRITE if found == "IMPORT" else found)


def differences(archived: ArchivedRegistry, live: ArchivedRegistry) -> tuple[str, ...]:
    """What a live registry has other than an archived one; empty: every id, version and reference is as archived.

    Compatibility levels and modes are compared where the archive has one; what a registry has by default is not
    archived.
    """
    return (*_version_differences(archived, live), *_setting_differences(archived, live))


def contracts(registry: ArchivedRegistry) -> tuple[SubjectVersion, ...]:
    """The versions with rules or metadata."""
    return tuple(version for version in registry.versions if version.contract)


def refuse_contracts(registry: ArchivedRegistry) -> None:
    """Raise UsageError if a version has rules or metadata: registering each schema would lose them."""
    found = contracts(registry)
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise UsageError(
            f"version {found[0].version} of {found[0].subject}{more}: rules or metadata would be lost, because only the"
            " registry's topic has them",
            remedy="restore the topic: use a backup that holds it, with --way topic and --bootstrap-servers",
        )


def _version_differences(archived: ArchivedRegistry, live: ArchivedRegistry) -> Iterator[str]:
    wanted = {(v.subject, v.version): v for v in archived.versions}
    found = {(v.subject, v.version): v for v in live.versions}
    meant = {(d.context, d.id): d for d in archived.definitions}
    there = {(d.context, d.id): d for d in live.definitions}
    for at, version in wanted.items():
        name = f"version {at[1]} of {at[0]}"
        other = found.get(at)
        if other is None:
            yield f"{name} is missing"
        elif other.id != version.id:
            yield f"{name} has the id {other.id} instead of {version.id}"
        elif other.deleted != version.deleted:
            yield f"{name} is {'deleted' if other.deleted else 'not deleted'}"
        elif version.contract and not other.contract:
            yield f"{name} has no rules and no metadata any more"
        else:
            key = (context_of(version.subject), version.id)
            yield from _definition_differences(name, meant.get(key), there.get(key))
    for at in found.keys() - wanted.keys():
        if at[0] != RESERVED:
            yield f"version {at[1]} of {at[0]} is not archived"


def _definition_differences(
    name: str, wanted: SchemaDefinition | None, found: SchemaDefinition | None
) -> Iterator[str]:
    if wanted is None or found is None:
        yield f"{name} has no schema"
        return
    if wanted.type != found.type:
        yield f"{name} is of type {found.type} instead of {wanted.type}"
    if not same_text(wanted.text, found.text):
        yield f"{name} has another schema under the id {wanted.id}"
    if sorted(wanted.references) != sorted(found.references):
        yield f"{name} has other references"


def same_text(one: str, other: str) -> bool:
    """Whether two schemas are equal: as JSON, where they are JSON."""
    if one == other:
        return True
    try:
        return _canonical(one) == _canonical(other)
    except (ValueError, RecursionError):
        return one.split() == other.split()


def _canonical(text: str) -> str:
    """JSON in one form, for comparison. Python's own comparison would say that true equals 1."""
    return json.dumps(json.loads(text), sort_keys=True)


def _setting_differences(archived: ArchivedRegistry, live: ArchivedRegistry) -> Iterator[str]:
    levels = {s.subject: s.value for s in live.compatibility}
    for setting in archived.compatibility:
        if levels.get(setting.subject) != setting.value:
            found = levels.get(setting.subject, "none")
            yield f"the compatibility of {setting.subject or 'all subjects'} is {found} instead of {setting.value}"
    modes = {s.subject: s.value for s in live.modes}
    for setting in archived.modes:
        wanted = final_mode(archived).value if not setting.subject else setting.value
        if modes.get(setting.subject, READWRITE) != wanted:
            yield f"the mode of {setting.subject or 'all subjects'} is {modes.get(setting.subject)} instead of {wanted}"

"""Puts schemas into an order in which each comes after those that it refers to. Pure."""

from collections.abc import Iterable
from typing import Final

from logkeep.errors import Damaged
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SchemaReference, context_of

_DEEPEST: Final = 200
"""More references in a chain than people write."""
_Key = tuple[str, int]


def in_order(registry: ArchivedRegistry, wanted: Iterable[SchemaDefinition]) -> tuple[SchemaDefinition, ...]:
    """These definitions and all that they refer to. Raises Damaged for circular and missing references."""
    walk = _Walk(registry)
    for definition in wanted:
        walk.add(definition, ())
    return tuple(walk.done.values())


class _Walk:
    def __init__(self, registry: ArchivedRegistry) -> None:
        self._definitions = {(d.context, d.id): d for d in registry.definitions}
        self._ids = {(v.subject, v.version): v.id for v in registry.versions}
        self.done: dict[_Key, SchemaDefinition] = {}

    def add(self, one: SchemaDefinition, path: tuple[_Key, ...]) -> None:
        here = (one.context, one.id)
        first = f"schema {(*path, here)[0][1]}"
        if here in path:
            circle = " → ".join(str(number) for _, number in (*path[path.index(here) :], here))
            raise Damaged(f"its references are circular: {circle}", subject=first)
        if len(path) > _DEEPEST:
            raise Damaged(f"its references are more than {_DEEPEST} deep", subject=first)
        if here in self.done:
            return
        for reference in one.references:
            self.add(self._referred(one, reference), (*path, here))
        self.done[here] = one

    def _referred(self, one: SchemaDefinition, reference: SchemaReference) -> SchemaDefinition:
        for subject in referred_subjects(one, reference):
            number = self._ids.get((subject, reference.version), -1)
            found = self._definitions.get((context_of(subject), number))
            if found is not None:
                return found
        what = f"it refers to version {reference.version} of {reference.subject}, which is not archived"
        raise Damaged(what, subject=f"schema {one.id}")


def referred_subjects(one: SchemaDefinition, reference: SchemaReference) -> tuple[str, ...]:
    """A name without a context means the context of the schema that refers to it, or in older registries the usual."""
    if not one.context or context_of(reference.subject):
        return (reference.subject,)
    return f":{one.context}:{reference.subject}", reference.subject

"""Restores an archived registry into an empty one, and reads every id, version and reference back.

There are two ways through the API of the registry: Apicurio imports its own export, and other registries get each
schema with its id in the mode IMPORT. The answers prove nothing, because a registry may answer 200 and use another id.
So everything is read back. Any difference ends the restore; then what it registered is deleted again, and what cannot
be deleted is named.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from logkeep.errors import ClusterError, RestoreFailed, TargetUnsafe, UsageError
from logkeep.kafka.registry.apicurio import import_export
from logkeep.kafka.registry.capture import capture_from
from logkeep.kafka.registry.confluent import ConfluentApi, named_error
from logkeep.kafka.registry.restore_plan import (
    READWRITE,
    RESERVED,
    deletions,
    differences,
    final_mode,
    registrations,
    reserved_id,
    same_text,
)
from logkeep.kafka.registry.values import ArchivedRegistry, SchemaDefinition, SubjectSetting, SubjectVersion

_SHOWN: Final = 5
_IMPORT: Final = "IMPORT"
_PLACEHOLDER: Final = '{"type":"record","name":"ReservedId","namespace":"logkeep","fields":[]}'
_OTHER_WAY: Final = "restore the registry's topic instead: stop the registry, and pass --bootstrap-servers"


class RestoreWay(StrEnum):
    """How a registry gets its schemas back."""

    NOTHING = "nothing"
    """Nothing is to be restored: the registry has all schemas."""
    TOPIC = "topic"
    IMPORT = "import"
    API = "api"


@dataclass(frozen=True)
class RegistryState:
    """What a registry holds before a restore."""

    differences: tuple[str, ...]
    used_ids: int
    """How many ids were used, also by deleted schemas where the registry reports them: it uses none of them again."""

    @property
    def restored(self) -> bool:
        return not self.differences


def live_state(api: ConfluentApi, archived: ArchivedRegistry) -> RegistryState:
    """How a live registry differs from the archived one. Raises ClusterError."""
    also = (setting.subject for setting in (*archived.compatibility, *archived.modes))
    live = capture_from(api, also).registry
    return RegistryState(differences(archived, live), len(live.definitions))


def refuse_used(state: RegistryState, url: str) -> None:
    """Raise TargetUnsafe if the registry holds schemas, deleted ones too, other than the archived."""
    if state.used_ids:
        raise TargetUnsafe(
            f"the registry has used ids, and differs from the archive: {listed(state.differences)}",
            subject=url,
            remedy="restore into a registry in which no schema was ever registered; deleted ones count",
        )


def api_way(api: ConfluentApi, export: bytes) -> RestoreWay:
    """Which API restores it."""
    if export and api.origin != "apicurio":
        raise UsageError(
            "the archive is an export of Apicurio's registry, and this registry is another one",
            subject=str(api.client.address),
            remedy="restore into an Apicurio registry, or restore the topics of the registry",
        )
    return RestoreWay.IMPORT if export else RestoreWay.API


def restore_by_api(
    api: ConfluentApi, archived: ArchivedRegistry, export: bytes, warn: Callable[[str], None]
) -> tuple[str, ...]:
    """Restore into an empty registry and read it back. Returns notes. Raises RestoreFailed and ClusterError.

    A signal undoes it too: `warn` gets what remains, and the signal is raised again.
    """
    planned, mode = registrations(archived), api.mode()
    try:
        if export:
            import_export(api, export)
            notes: tuple[str, ...] = ()
        else:
            notes = _register(api, archived, planned)
        read_back(api, archived)
    except (ClusterError, RestoreFailed) as error:
        what = f"{error.what}; {_undo(api, archived, mode)}"
        raise RestoreFailed(what, subject=error.subject, remedy=error.remedy) from error
    except KeyboardInterrupt:
        warn(f"{api.client.address}: the restore was interrupted; {_undo(api, archived, mode)}")
        raise
    return notes


def read_back(api: ConfluentApi, archived: ArchivedRegistry) -> None:
    """Raise RestoreFailed unless every id, version and reference is as archived."""
    state = live_state(api, archived)
    if not state.restored:
        raise RestoreFailed(
            f"the registry does not hold what was archived: {listed(state.differences)}",
            subject=str(api.client.address),
            remedy=_OTHER_WAY,
        )
    wrong = [f"id {d.id}" for d in archived.definitions if not (d.erased or d.context or _same_by_id(api, d))]
    if wrong:
        what = f"the registry does not answer as archived for {listed(wrong)}"
        raise RestoreFailed(what, subject=str(api.client.address), remedy=_OTHER_WAY)


def _same_by_id(api: ConfluentApi, definition: SchemaDefinition) -> bool:
    """Whether the registry answers a schema's id with the archived text. Apicurio formats the text again in its answer:
    for it, the comparison of its export counts."""
    text = api.text_of(definition.id)
    return text is not None and (api.origin == "apicurio" or same_text(definition.text, text))


def _register(
    api: ConfluentApi, archived: ArchivedRegistry, planned: Iterable[tuple[SubjectVersion, SchemaDefinition]]
) -> tuple[str, ...]:
    api.set_mode(SubjectSetting(_IMPORT))
    for version, definition in planned:
        _register_one(api, version, definition)
    number = reserved_id(archived)
    notes = () if number is None else (_reserve(api, number),)
    for subject, one in deletions(archived):
        api.delete(subject, one)
    for level in archived.compatibility:
        api.set_compatibility(level)
    for mode in archived.modes:  # last: READONLY forbids every other change
        if mode.subject:
            api.set_mode(mode)
    api.set_mode(final_mode(archived))
    return notes


def _register_one(api: ConfluentApi, version: SubjectVersion, definition: SchemaDefinition) -> None:
    given = api.register(version, definition)
    if given != version.id:
        raise RestoreFailed(
            f"the registry gave version {version.version} of {version.subject} the id {given} instead of {version.id}",
            subject=str(api.client.address),
            remedy=_OTHER_WAY,
        )


def _reserve(api: ConfluentApi, number: int) -> str:
    """Register a placeholder, so that no new schema gets the highest id ever issued. It may get a higher id itself."""
    given = api.register(SubjectVersion(RESERVED, 1, number), SchemaDefinition(number, _PLACEHOLDER))
    api.delete(RESERVED)
    if given < number:
        what = f"the registry gave the id {given}, and would give {number} again"
        raise RestoreFailed(what, subject=str(api.client.address), remedy=_OTHER_WAY)
    return f"id {number} was the highest ever issued: the deleted subject {RESERVED} keeps it from being used again"


def _undo(api: ConfluentApi, archived: ArchivedRegistry, mode: str | None) -> str:
    """Delete everything that the restore registered. Returns a sentence that names what was not deleted."""
    left: list[str] = []
    ours = dict.fromkeys((*archived.subjects(), RESERVED))
    try:
        _allow_changes(api, archived, left)
        there = set(api.subjects())
        for subject in ours:
            if subject in there:
                _try(lambda name=subject: _delete_for_good(api, name), subject, left)  # type: ignore[misc]
        if mode is not None and mode != READWRITE:
            _try(lambda: api.set_mode(SubjectSetting(mode)), "the mode", left)
        left += [subject for subject in api.subjects() if subject in ours and subject not in left]
    except ClusterError as second:
        left.append(f"unknown, because {named_error(second)}")
    return f"these changes remain: {listed(left)}" if left else "what was registered is deleted again"


def _allow_changes(api: ConfluentApi, archived: ArchivedRegistry, left: list[str]) -> None:
    """Set modes that allow deletions: READONLY, of the registry or of one subject, forbids them."""
    if api.mode() not in {None, READWRITE}:
        _try(lambda: api.set_mode(SubjectSetting(READWRITE)), "the mode", left)
    for setting in archived.modes:
        if setting.subject and setting.value != READWRITE and api.mode(setting.subject) == setting.value:
            name = f"the mode of {setting.subject}"
            _try(lambda one=setting.subject: api.set_mode(SubjectSetting(READWRITE, one)), name, left)  # type: ignore[misc]


def _delete_for_good(api: ConfluentApi, subject: str) -> None:
    """A subject is deleted first, and then for good. Some registries do both at once."""
    try:
        api.delete(subject)
    finally:
        if subject in api.subjects():
            api.delete(subject, permanent=True)


def _try(change: Callable[[], None], name: str, left: list[str]) -> None:
    try:
        change()
    except ClusterError:
        left.append(name)


def listed(some: Iterable[str]) -> str:
    """The first of them, and how many more there are."""
    every = list(some)
    more = f", and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more

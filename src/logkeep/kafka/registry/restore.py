"""Restores an archived registry into an empty one, and reads every id, version and reference back.

Two ways change the registry through its API: Apicurio's own import of its own export, and registering each schema with
its id in the mode IMPORT. Neither is believed: a registry may answer 200 and use another id. Whatever differs ends the
restore, and what it registered is deleted again; what cannot be deleted is named.
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
    """It has them all."""
    TOPIC = "topic"
    IMPORT = "import"
    API = "api"


@dataclass(frozen=True)
class RegistryState:
    """What a registry holds before a restore."""

    differences: tuple[str, ...]
    used_ids: int
    """Of deleted schemas too, where the registry reports them: it gives none of them again."""

    @property
    def restored(self) -> bool:
        return not self.differences


def live_state(api: ConfluentApi, archived: ArchivedRegistry) -> RegistryState:
    """Raises ClusterError."""
    live = capture_from(api).registry
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


def restore_by_api(api: ConfluentApi, archived: ArchivedRegistry, export: bytes) -> tuple[str, ...]:
    """Restore into an empty registry and read it back. Returns notes. Raises RestoreFailed and ClusterError."""
    planned, mode = registrations(archived), api.mode()
    try:
        if export:
            import_export(api, export)
            notes: tuple[str, ...] = ()
        else:
            notes = _register(api, archived, planned)
        read_back(api, archived)
    except (ClusterError, RestoreFailed) as error:
        raise _undone(api, (v.subject for v, _ in planned), mode, error) from error
    except KeyboardInterrupt as signal:
        stopped = RestoreFailed("the restore was interrupted", subject=str(api.client.address), remedy="run it again")
        raise _undone(api, (v.subject for v, _ in planned), mode, stopped) from signal
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
    """Apicurio writes a schema anew when it is asked by its id; its export was compared before."""
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
    api.set_mode(final_mode(archived))
    for mode in archived.modes:
        if mode.subject:
            api.set_mode(mode)
    for level in archived.compatibility:
        api.set_compatibility(level)
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
    """No new schema may get the highest id ever issued. A higher one for the placeholder does as well."""
    given = api.register(SubjectVersion(RESERVED, 1, number), SchemaDefinition(number, _PLACEHOLDER))
    api.delete(RESERVED)
    if given < number:
        what = f"the registry gave the id {given}, and would give {number} again"
        raise RestoreFailed(what, subject=str(api.client.address), remedy=_OTHER_WAY)
    return f"id {number} was the highest ever issued: the deleted subject {RESERVED} keeps it from being used again"


def _undone(
    api: ConfluentApi, subjects: Iterable[str], mode: str | None, error: ClusterError | RestoreFailed
) -> RestoreFailed:
    """The error, after everything that the restore registered was deleted; it names what was not."""
    left: list[str] = []
    ours = dict.fromkeys((*subjects, RESERVED))
    try:
        there = set(api.subjects())
        for subject in ours:
            if subject in there:
                _try(lambda name=subject: _delete_for_good(api, name), subject, left)  # type: ignore[misc]
        if mode is not None and api.mode() != mode:
            _try(lambda: api.set_mode(SubjectSetting(mode)), "the mode", left)
        left += [subject for subject in api.subjects() if subject in ours and subject not in left]
    except ClusterError as second:
        left.append(f"unknown, because {named_error(second)}")
    ending = f"; these changes remain: {listed(left)}" if left else "; what was registered is deleted again"
    return RestoreFailed(error.what + ending, subject=error.subject, remedy=error.remedy)


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

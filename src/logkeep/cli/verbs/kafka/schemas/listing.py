"""`logkeep kafka schemas list` and `show`: the archived registry of a backup."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.cli.verbs.kafka.schemas.declarations import LIST, SHOW
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import ALL, SCHEMAS_CONTEXT, SCHEMAS_TOPIC
from logkeep.errors import UsageError
from logkeep.kafka.registry.attachment import RegistryDocument
from logkeep.kafka.registry.documents import read_captured, read_registry
from logkeep.kafka.registry.references import referred_subjects
from logkeep.kafka.registry.values import (
    ArchivedRegistry,
    SchemaDefinition,
    SchemaReference,
    SubjectVersion,
    context_of,
)
from logkeep.model.time import Rfc3339
from logkeep.reports.backups import read_source
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded

_SHOWN = 40
_USUAL = "."
"""The name of the usual context, as Confluent's registry writes it."""
_HEADERS = ("SUBJECT", "VERSIONS", "IDS", "TYPE", "COMPATIBILITY", "NOTES")


@dataclass(frozen=True)
class SchemasBackup:
    """A backup and its archived registry."""

    place: SourceRef
    folded: Folded
    manifest: Manifest
    registry: ArchivedRegistry
    captured: RegistryDocument | None

    @property
    def export(self) -> bytes:
        return self.captured.export if self.captured is not None else b""


def schemas_backup(run: Run, backup: str, *, read_only: bool = True) -> SchemasBackup:
    """Raises UsageError if the backup has no registry."""
    place = chosen_source(run, read_only=read_only)
    found = read_source(place, run.clock())
    manifest = read_manifest(place, found.completed(backup))
    captured = read_captured(place, manifest)
    registry = read_registry(place, found.folded, manifest, run[SCHEMAS_TOPIC])
    return SchemasBackup(place, found.folded, manifest, registry, captured)


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    id: int
    type: str
    deleted: bool
    references: tuple[SchemaReference, ...]


class SubjectRow(msgspec.Struct, frozen=True, kw_only=True):
    subject: str
    versions: tuple[VersionRow, ...]
    compatibility: str | None
    mode: str | None


class SchemasReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    source: str
    origin: str
    """`topic`: the registry's archived topic; `confluent`, `apicurio`: read from the registry itself."""
    registry_url: str | None
    captured: Rfc3339 | None
    subjects: tuple[SubjectRow, ...]
    compatibility: str | None
    """For all subjects; null if it was never set."""
    mode: str | None
    erased_ids: tuple[int, ...]
    """Deleted for good by the registry; the archive still has their schemas."""
    highest_id: int
    unreadable: int
    """Records of the topic that no rule explains."""
    all: bool


class UsedBy(msgspec.Struct, frozen=True, kw_only=True):
    subject: str
    version: int
    deleted: bool


class ReferenceRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    subject: str
    version: int
    id: int
    """-1: the registry has deleted this version for good."""


class SchemaReport(msgspec.Struct, frozen=True, kw_only=True):
    several_lines: ClassVar[tuple[str, ...]] = ("text",)

    id: int
    source: str
    schema_id: int
    type: str
    text: str
    references: tuple[ReferenceRow, ...]
    used_by: tuple[UsedBy, ...]
    erased: bool
    guid: str
    context: str
    """Of the registry; `.` is the usual one."""
    other_contexts: tuple[str, ...]
    """In which this id has another meaning: --context shows it."""


def _list_text(report: SchemasReport, look: TerminalStyle) -> str:
    shown = report.subjects if report.all else report.subjects[:_SHOWN]
    rows = [
        (row.subject, _span(v.version for v in row.versions), _span(v.id for v in row.versions),
         ", ".join(sorted({v.type for v in row.versions})), row.compatibility or "-", ", ".join(_notes(row)))
        for row in shown
    ]  # fmt: skip
    lines = [look.table(_HEADERS, rows, free="NOTES")] if rows else [look.text("no subject is archived")]
    if len(report.subjects) > len(shown):
        lines.append(look.text(f"… and {count(len(report.subjects) - len(shown))} more; --all shows them"))
    lines += map(look.prose, _sums(report))
    return "\n".join(lines)


def _sums(report: SchemasReport) -> Iterator[str]:
    from_where = f"the registry at {report.registry_url}" if report.registry_url else "the registry's topic"
    ids = {(context_of(row.subject), v.id) for row in report.subjects for v in row.versions}
    yield f"{plural(len(report.subjects), 'subject')}, {plural(len(ids), 'schema')}, from {from_where}"
    settings = f"compatibility {report.compatibility or 'not set'}, mode {report.mode or 'not set'}"
    yield f"{settings}, highest id {report.highest_id}"
    if report.erased_ids:
        yield f"deleted for good, and still archived: {_span(report.erased_ids)}"
    if report.unreadable:
        yield f"{plural(report.unreadable, 'record')} of the topic cannot be explained; a restore of the topic has them"


def _span(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return ", ".join(map(str, found)) if len(found) <= 4 else f"{found[0]} … {found[-1]} ({len(found)})"


def _notes(row: SubjectRow) -> Iterator[str]:
    gone = sum(v.deleted for v in row.versions)
    if gone:
        yield "deleted" if gone == len(row.versions) else f"{plural(gone, 'version')} deleted"
    if any(v.references for v in row.versions):
        yield "with references"
    if row.mode:
        yield f"mode {row.mode}"


def _show_text(report: SchemaReport, look: TerminalStyle) -> str:
    pairs = {"schema": str(report.schema_id), "type": report.type}
    if report.context != _USUAL:
        pairs["context"] = report.context
    if report.guid:
        pairs["guid"] = report.guid
    used = (f"{u.subject} version {u.version}{' (deleted)' if u.deleted else ''}" for u in report.used_by)
    pairs["used by"] = ", ".join(used) or "no subject: the registry has deleted it for good"
    if report.references:
        pairs["refers to"] = ", ".join(map(_reference, report.references))
    if report.other_contexts:
        pairs["also in"] = f"{', '.join(report.other_contexts)}: --context shows what it means there"
    lines = _pretty(report.text).split("\n")
    # With numbers: the lines are an archived text, and could be mistaken for this command's own.
    return "\n".join([look.pairs(pairs), *(look.line(f"{at:>4}  {line}") for at, line in enumerate(lines, 1))])


def _reference(row: ReferenceRow) -> str:
    number = f"id {row.id}" if row.id >= 0 else "deleted for good"
    return f"{row.name} = {row.subject} version {row.version} ({number})"


def _pretty(text: str) -> str:
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(text), indent=2)
    return text


@verb(LIST, report=SchemasReport, text=_list_text)
def list_schemas(run: Run, backup: str) -> SchemasReport:
    found = schemas_backup(run, backup)
    registry, captured = found.registry, found.captured
    levels = {s.subject: s.value for s in registry.compatibility}
    modes = {s.subject: s.value for s in registry.modes}
    by_subject: dict[str, list[SubjectVersion]] = {}
    for version in registry.versions:
        by_subject.setdefault(version.subject, []).append(version)
    definitions = {(d.context, d.id): d for d in registry.definitions}
    return SchemasReport(
        id=found.manifest.id,
        source=found.place.source,
        origin=registry.origin,
        registry_url=captured.url if captured is not None else None,
        captured=captured.captured if captured is not None else None,
        subjects=tuple(
            SubjectRow(
                subject=subject,
                versions=tuple(_version_row(each, definitions) for each in versions),
                compatibility=levels.get(subject),
                mode=modes.get(subject),
            )
            for subject, versions in sorted(by_subject.items())
        ),
        compatibility=levels.get(""),
        mode=modes.get(""),
        erased_ids=tuple(d.id for d in registry.definitions if d.erased),
        highest_id=registry.highest_id,
        unreadable=registry.unreadable,
        all=run[ALL],
    )


def _version_row(one: SubjectVersion, definitions: Mapping[tuple[str, int], SchemaDefinition]) -> VersionRow:
    definition = definitions.get((context_of(one.subject), one.id))
    return VersionRow(
        version=one.version,
        id=one.id,
        type=definition.type if definition is not None else "?",
        deleted=one.deleted,
        references=definition.references if definition is not None else (),
    )


@verb(SHOW, report=SchemaReport, text=_show_text)
def show(run: Run, backup: str, schema_id: int) -> SchemaReport:
    found = schemas_backup(run, backup)
    registry = found.registry
    contexts = tuple(sorted({d.context or _USUAL for d in registry.definitions if d.id == schema_id}))
    definition = _in_context(registry, schema_id, run[SCHEMAS_CONTEXT])
    if definition is None:
        known = f"the archived ids are {_span(tuple(d.id for d in registry.definitions))}"
        if contexts:
            known = f"name a context that has it with --context: {', '.join(contexts)}"
        wanted = f" in the context {run[SCHEMAS_CONTEXT]}" if run[SCHEMAS_CONTEXT] else ""
        raise UsageError(f"no archived schema has the id {schema_id}{wanted}", remedy=known)
    return SchemaReport(
        id=found.manifest.id,
        source=found.place.source,
        schema_id=schema_id,
        type=definition.type,
        text=definition.text,
        references=reference_rows(registry, definition),
        used_by=tuple(
            UsedBy(subject=v.subject, version=v.version, deleted=v.deleted)
            for v in registry.versions
            if v.id == schema_id and context_of(v.subject) == definition.context
        ),
        erased=definition.erased,
        guid=definition.guid,
        context=definition.context or _USUAL,
        other_contexts=tuple(each for each in contexts if each != (definition.context or _USUAL)),
    )


def _in_context(registry: ArchivedRegistry, schema_id: int, context: str | None) -> SchemaDefinition | None:
    if context is None:
        return registry.find_anywhere(schema_id)
    return registry.find(schema_id, "" if context == _USUAL else context)


def reference_rows(registry: ArchivedRegistry, definition: SchemaDefinition) -> tuple[ReferenceRow, ...]:
    ids = {(v.subject, v.version): v.id for v in registry.versions}
    return tuple(
        ReferenceRow(
            name=r.name,
            subject=r.subject,
            version=r.version,
            id=next((ids[s, r.version] for s in referred_subjects(definition, r) if (s, r.version) in ids), -1),
        )
        for r in definition.references
    )

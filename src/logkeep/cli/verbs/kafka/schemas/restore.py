"""`logkeep kafka schemas restore`: a registry with every id, version and reference as archived."""

from collections.abc import Iterator

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.signals import after_a_signal
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.kafka.backup import chosen_registry, client_settings
from logkeep.cli.verbs.kafka.restore import restore_backup
from logkeep.cli.verbs.kafka.restore_report import BAD
from logkeep.cli.verbs.kafka.schemas.declarations import RESTORE
from logkeep.cli.verbs.kafka.schemas.listing import SchemasBackup, schemas_backup
from logkeep.cli.verbs.next_steps import after_restore
from logkeep.cli.wiring import refuse_contradictions
from logkeep.config.options import (
    BOOTSTRAP_SERVERS,
    COMMAND_CONFIG,
    LIMIT_PRODUCE,
    REPLICATION_FACTOR,
    SCHEMAS_TOPIC,
    SCHEMAS_WAY,
    TOPICS,
)
from logkeep.errors import ClusterUnreachable, RestoreFailed, TargetUnsafe, UsageError
from logkeep.kafka.registry.apicurio import open_api
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi
from logkeep.kafka.registry.documents import topic_logs
from logkeep.kafka.registry.restore import RestoreWay, api_way, live_state, read_back, refuse_used, restore_by_api
from logkeep.kafka.registry.restore_plan import contracts, refuse_contracts, registrations
from logkeep.kafka.registry.settings import RegistrySettings
from logkeep.kafka.registry.values import ArchivedRegistry
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import KafkaRestoreOptions
from logkeep.kafka.topic_selection import exact_pattern
from logkeep.model.findings import Finding, Severity


class SchemasRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    backup: int
    source: str
    registry_url: str
    way: str
    """`topic`, `import`, `api`; `nothing`: the registry already holds exactly what is archived."""
    subjects: int
    schemas: int
    versions: int
    deleted_versions: int
    verdict: str
    """`planned`; `proven`: every id, version and reference was read back; `unproven`: the registry was not asked."""
    notes: tuple[str, ...]
    restore: int | None
    """The restore of the topic, as in `receipts list`."""
    dry_run: bool
    refusal_code: int = 0
    """On a dry run: the exit code with which a run would be refused; `notes` say why."""
    findings: tuple[Finding, ...] = ()
    """Of the restore of the topic."""


def _lines(report: SchemasRestoreReport, look: TerminalStyle) -> Iterator[str]:
    what = f"{plural(report.schemas, 'schema')} in {plural(report.versions, 'version')} of "
    what += f"{plural(report.subjects, 'subject')}, {plural(report.deleted_versions, 'version')} of them deleted"
    if report.dry_run:
        yield f"would restore {what}, by {_WAYS[report.way]}"
    elif report.way == RestoreWay.NOTHING:
        yield f"{look.state('OK')}  the registry holds exactly what is archived: {what}"
    elif report.verdict == "proven":
        yield f"{look.state('OK')}  restored by {_WAYS[report.way]} and read back: {what}"
    else:
        yield f"{look.state('WARN')}  restored by {_WAYS[report.way]}, not read back yet: {what}"
    yield from report.notes
    for finding in report.findings:
        if finding.severity is not Severity.NOTE:
            yield f"{finding.severity.upper()}  {finding.where}: {finding.what}"


_NEXT = "start the registry, and run this command again: it compares every id, version and reference"
_WAYS = {"topic": "its topic", "import": "Apicurio's import", "api": "its API", "nothing": "nothing"}


@verb(
    RESTORE,
    next_step=after_restore,
    report=SchemasRestoreReport,
    text=lambda report, look: "\n".join(map(look.prose, _lines(report, look))),
    exit_code=lambda report: report.refusal_code or 2 * (report.verdict == "unproven"),
)
def restore(run: Run, backup: str) -> SchemasRestoreReport:
    refuse_contradictions(run)
    settings = chosen_registry(run)
    if settings is None:
        raise UsageError("no schema registry is named", remedy="name it with --registry URL")
    found = schemas_backup(run, backup, read_only=False)
    registrations(found.registry)  # circular and missing references are damage
    if _topic_way(run, found):
        return _restore_topic(run, found, settings)
    with RegistryClient(settings) as client:
        return _restore_by_api(run, found, open_api(client))


def _topic_way(run: Run, found: SchemasBackup) -> bool:
    wanted, there = run[SCHEMAS_WAY], bool(topic_logs(found.manifest, run[SCHEMAS_TOPIC]))
    if wanted == "topic" and not there:
        raise UsageError(f"the topic {run[SCHEMAS_TOPIC]} is not in this backup", remedy="leave --way out")
    if wanted == "import" and not found.export:
        raise UsageError("the backup has no export of Apicurio's registry", remedy="leave --way out")
    named = run[BOOTSTRAP_SERVERS] is not None or run[COMMAND_CONFIG] is not None
    return wanted == "topic" or (wanted == "auto" and there and named and not found.export)


def _restore_by_api(run: Run, found: SchemasBackup, api: ConfluentApi) -> SchemasRestoreReport:
    export = b"" if run[SCHEMAS_WAY] == "api" else found.export
    way, url = api_way(api, export), str(api.client.address)
    state = live_state(api, found.registry)
    if state.restored:
        read_back(api, found.registry)
        return _report(run, found, url, RestoreWay.NOTHING, "proven")
    refuse_used(state, url)
    if way is RestoreWay.API:
        refuse_contracts(found.registry)
    planned = _report(run, found, url, way, "planned")
    if run.dry_run:
        return planned
    run.confirm(f"restore {plural(planned.schemas, 'schema')} into the registry at {url}?")
    notes = _interruptible(run, api, found.registry, export)
    if found.registry.unreadable:
        notes = (*notes, f"{plural(found.registry.unreadable, 'record')} of the topic cannot be restored in this way")
    return _report(run, found, url, way, "proven", notes=notes)


def _interruptible(run: Run, api: ConfluentApi, archived: ArchivedRegistry, export: bytes) -> tuple[str, ...]:
    with after_a_signal("run it again"):
        return restore_by_api(api, archived, export, run.console.warn)


def _restore_topic(run: Run, found: SchemasBackup, settings: RegistrySettings) -> SchemasRestoreReport:
    """The registry must not run meanwhile. If it runs and holds everything, it was restored before."""
    url = str(settings.address)
    try:
        with RegistryClient(settings) as client:
            api = open_api(client)
            state = live_state(api, found.registry)
            if state.restored:
                read_back(api, found.registry)
                return _report(run, found, url, RestoreWay.NOTHING, "proven")
            refuse_used(state, url)
    except ClusterUnreachable:
        return _write_topic(run, found, url)
    raise TargetUnsafe(
        "the registry is running: it would read its topic while it is restored",
        subject=url,
        remedy=f"stop it, and delete the topic {run[SCHEMAS_TOPIC]} if it exists; or restore by --way api",
    )


def _write_topic(run: Run, found: SchemasBackup, url: str) -> SchemasRestoreReport:
    topic = run[SCHEMAS_TOPIC]
    options = KafkaRestoreOptions(
        RestoreSelection(include=(exact_pattern(topic),)),
        PlanOptions(parts=("data", "configs"), replication_factor=run[REPLICATION_FACTOR]),
        run[LIMIT_PRODUCE],
    )
    typed = {TOPICS.name: topic}
    written = restore_backup(run, found.place, client_settings(run), str(found.manifest.id), options, typed)
    if written.verdict in BAD:
        raise RestoreFailed(
            f"the topic could not be restored: {written.verdict}",
            subject=topic,
            remedy=f"see `logkeep receipts show {written.restore}`",
        )
    verdict, notes = ("planned", written.refusals) if run.dry_run else ("unproven", (_NEXT,))
    if some := contracts(found.registry):
        notes = (*notes, f"rules and metadata of {plural(len(some), 'version')} are restored with the topic's bytes")
    report = _report(run, found, url, RestoreWay.TOPIC, verdict, notes=notes, restore=written.restore)
    return msgspec.structs.replace(report, refusal_code=written.refusal_code, findings=written.findings)


def _report(
    run: Run,
    found: SchemasBackup,
    url: str,
    way: RestoreWay,
    verdict: str,
    *,
    notes: tuple[str, ...] = (),
    restore: int | None = None,
) -> SchemasRestoreReport:
    registry = found.registry
    return SchemasRestoreReport(
        backup=found.manifest.id,
        source=found.place.source,
        registry_url=url,
        way=way.value,
        subjects=len(registry.subjects()),
        schemas=len({v.id for v in registry.versions}),
        versions=len(registry.versions),
        deleted_versions=sum(v.deleted for v in registry.versions),
        verdict=verdict,
        notes=notes,
        restore=restore,
        dry_run=run.dry_run,
    )

"""`logkeep verify`: check that a backup is still what was written."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.certificate_text import certificate_lines
from logkeep.cli.verbs.declarations import VERIFY
from logkeep.cli.verbs.next_steps import after_verify
from logkeep.cli.wiring import chosen_engine, chosen_source, expect_work
from logkeep.config.options import (
    LEVEL,
    LIMIT_DOWNLOAD,
    SAMPLE,
    SHOW_KEYS,
)
from logkeep.errors import Damaged, UsageError
from logkeep.kinds import KAFKA, DeepRequest, SourceKind, kind_of
from logkeep.model.findings import DELETION_DOUBTS, Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.reports.backups import read_source
from logkeep.reports.verification import VerifyReport, ZooKeeperVerified, verify_report
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.backups.verification import KEYS_RETURN, SOURCE_DIFFERS
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.checks import UNIT_BYTES, VerifySample
from logkeep.repository.verify.name_versions import DOUBTS
from logkeep.repository.verify.run import Deeper, Verifier

if TYPE_CHECKING:
    from logkeep.kafka.client.settings import ClientSettings

_SHOWN = 50


def _text(report: VerifyReport, look: TerminalStyle) -> str:
    bad = report.verdict != GOOD or _lost_transactions(report) or _differs(report) or _brings_back(report)
    state = look.state("FAIL" if bad else "OK")
    files = report.level == "files"
    share = "" if report.sample == "1/1" or files else f", sample {report.sample}"
    head = f"{state}  backup {report.id} of {report.source}: {report.verdict} (level {report.level}{share})"
    read = "" if files else f" · {count(report.objects_read)} read"
    lines = [head, look.text(f"{plural(report.objects, 'object')} · {size(report.stored_bytes)}{read}")]
    lines += _zookeeper_lines(report.zookeeper, look) if report.zookeeper else []
    if report.certificate is not None:
        lines += certificate_lines(report.certificate, report.certificate_verdict or "", look)
    if report.verdict == GOOD and _lost_transactions(report):
        lines.append(look.line("every object is good, but transactions are missing before the restorable range"))
    if report.verdict == GOOD and _differs(report):
        lines.append(look.line("every object is good and can be restored, but the source has other records now"))
    if report.verdict == GOOD and _brings_back(report):
        lines.append(look.line("every object is good, but a restore would bring deleted keys back"))
    findings = _findings_to_show(report)
    for finding in findings[:_SHOWN]:
        lines.append(look.line(f"{finding.severity.upper():8}{finding.where}: {finding.what}"))
        if finding.remedy:
            lines.append(look.line(f"        try: {finding.remedy}"))
    if len(findings) > _SHOWN:
        lines.append(look.text(f"… and {count(len(findings) - _SHOWN)} more; --json has all"))
    lines += _key_lines(report, look)
    if report.zookeeper and report.verdict != GOOD:
        lines.append(look.line("see what can be repaired:"))
        lines.append(look.line(f"  logkeep zookeeper repair {report.id} --dry-run"))
    if report.also_damaged:
        lines.append(f"also damaged, because they share these objects: {', '.join(map(str, report.also_damaged))}")
    if report.verdict == GOOD and report.health == "damaged":
        lines += _remaining_damage(report, look)
    if not report.stored:
        lines.append(look.text("the store is read-only: this result is not stored"))
    return "\n".join(lines)


def _findings_to_show(report: VerifyReport) -> tuple[Finding, ...]:
    """Without those that the table of the certificate has."""
    if report.certificate is None:
        return report.findings
    from logkeep.checkpoint.certificate.run import RULE_UNCHECKED  # noqa: PLC0415 - only with a certificate

    return tuple(f for f in report.findings if f.code != RULE_UNCHECKED)


def _key_lines(report: VerifyReport, look: TerminalStyle) -> list[str]:
    """Keys in clear, where the user asked for them; their hashes are in the findings."""
    shown = [each for each in report.deleted_keys if each.key is not None]
    lines = [look.line(f"        {each.log} offset {each.offsets[-1]}: {each.key}") for each in shown[:_SHOWN]]
    more = [look.text(f"        … and {count(len(shown) - _SHOWN)} more; --json has more of them")]
    return lines + (more if len(shown) > _SHOWN else [])


def _remaining_damage(report: VerifyReport, look: TerminalStyle) -> list[str]:
    level = report.health_level
    what = f"{look.state('WARN')}  damage that an earlier verification found at level {level} remains"
    return [look.prose(what), f"      try: logkeep verify {report.id} --level {level}"]


def _zookeeper_lines(found: ZooKeeperVerified, look: TerminalStyle) -> list[str]:
    digests = plural(found.digests_compared, "digest")
    replayed = f"{plural(found.transactions, 'transaction')} replayed · {digests} compared"
    return [
        look.text(f"{found.condition} · quality {found.quality}/100"),
        *([look.text(replayed)] if found.transactions else []),
        *(look.line(f"can be restored: {interval}") for interval in found.reachable),
        *(look.line(f"the end: {label}") for label in found.labels),
        *([] if found.restorable else [look.line("the end of the backup cannot be restored")]),
    ]


def _lost_transactions(report: VerifyReport) -> bool:
    """All objects may be good while transactions are missing."""
    return report.zookeeper is not None and any(f.code == "lost-transactions" for f in report.findings)


def _differs(report: VerifyReport) -> bool:
    """The source has other records than the backup, whose objects are good."""
    return any(f.code == SOURCE_DIFFERS for f in report.findings)


def _brings_back(report: VerifyReport) -> bool:
    """A restore would bring deleted keys back; all objects are good."""
    return any(f.code == KEYS_RETURN for f in report.findings)


def _code(report: VerifyReport) -> int:
    """2 when it is good, but the requested level was not reached or there are warnings."""
    zookeeper = report.zookeeper
    if _differs(report) or _brings_back(report):
        return 10
    if report.verdict != GOOD or _lost_transactions(report) or (zookeeper is not None and not zookeeper.restorable):
        return 10
    doubtful = zookeeper is not None and any(f.severity is Severity.WARNING for f in report.findings)
    doubtful = doubtful or any(f.code in DOUBTS or f.code in DELETION_DOUBTS for f in report.findings)
    doubtful = doubtful or _damage_remains(report)
    return 2 if doubtful or report.level != report.asked_level else 0


def _damage_remains(report: VerifyReport) -> bool:
    """This run found none, but a deeper one before it did."""
    return report.health == DAMAGED


def _metrics(outcome: CommandOutcome[VerifyReport]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source
    yield sample("logkeep_verify_duration_seconds", outcome.duration.total_seconds(), source=source)
    if report is not None:
        bad = len({f.where for f in report.findings if f.severity == "damage"})
        yield sample("logkeep_verify_valid_files", max(0, report.objects - bad), source=source)
        yield sample("logkeep_verify_corrupted_files", bad, source=source)
        yield sample("logkeep_verify_repaired_files", 0, source=source)
        if _code(report) != Damaged.exit_code and not _damage_remains(report):
            ended = outcome.ended.timestamp()
            yield sample("logkeep_verify_last_success_timestamp_seconds", ended, source=source)


@verb(VERIFY, next_step=after_verify, report=VerifyReport, text=_text, exit_code=_code, metrics=_metrics)
def verify(run: Run, backup: str) -> VerifyReport:
    place = chosen_source(run)
    kind = kind_of(place)
    _check_level(run, place, kind)
    backup_id, expected_bytes = _chosen(run, place, backup)
    with ExitStack() as resources:
        request = DeepRequest(
            place=place,
            level=run[LEVEL],
            whole=run[SAMPLE] == 1,
            entry=lambda: read_source(place, run.clock()).completed(str(backup_id)),
            client_settings=lambda: _client_settings(run),
            cache=run.cache,
            resources=resources,
            say=run.say,
            show_keys=run[SHOW_KEYS],
            limit_download=run[LIMIT_DOWNLOAD],
        )
        owner, share = this_process(run.token()), run[SAMPLE]
        read_bytes = int(expected_bytes * share) if run[LEVEL] != "files" else 0
        expect_work(run, read_bytes, UNIT_BYTES, "verify")
        deeper = _DEEPER.get((kind.name, run[LEVEL]), kind.deeper)(request)
        engine = chosen_engine(run, read_bytes, work="verify")
        verifier = Verifier(
            place, engine, owner, run.clock, run.token, kind.read_task(), deeper, partial(_doubts, kind, place)
        )
        verified = verifier.verify(backup_id, run[LEVEL], VerifySample(share.numerator, share.denominator))
    return verify_report(place, run[LEVEL], verified, deeper)


def _doubts(kind: SourceKind, place: SourceRef, folded: Folded, manifest: Manifest) -> tuple[Finding, ...]:
    """Stored findings too: what a backup says itself that deletions may be missing, or of its logs."""
    stored = (f for f in manifest.findings if f.code in (*DELETION_DOUBTS, *kind.lasting))
    return (*stored, *kind.doubts(place, folded, manifest))


def _participants_check(request: DeepRequest) -> Deeper:
    """Raises UsageError if the backup has no cut of an application."""
    from logkeep.application.kafka.certificate import ParticipantCutCheck  # noqa: PLC0415 - only this level needs it
    from logkeep.kafka.record.documents import APPLICATION_CUT  # noqa: PLC0415 - as above

    entry = request.entry()
    if all(ref.role != APPLICATION_CUT for ref in read_manifest(request.place, entry).attachments):
        raise UsageError(
            "it has no cut of an application",
            subject=f"backup {entry.id}",
            remedy="take one with `logkeep kafka backup --application`, or choose another level",
        )
    return ParticipantCutCheck()


_DEEPER: dict[tuple[str, str], Callable[[DeepRequest], Deeper | None]] = {(KAFKA.name, "cut"): _participants_check}
"""Checks that need `application`, which `kinds` must not import."""


def _client_settings(run: Run) -> "ClientSettings":
    from logkeep.cli.verbs.kafka.backup import client_settings  # noqa: PLC0415 - only --level source needs it

    return client_settings(run)


def _check_level(run: Run, place: SourceRef, kind: SourceKind) -> None:
    """Each kind of source has levels of its own. Raises UsageError."""
    level = run[LEVEL]
    if level not in kind.verify_levels:
        what = f"backups of {kind.name or 'this source'} have no level {level}"
        remedy = f"choose among {', '.join(kind.verify_levels)}"
        raise UsageError(what, subject=f"source {place.source}", remedy=remedy)
    if run[SHOW_KEYS] and level != "source":
        raise UsageError("--show-keys shows what --level source finds", remedy="add --level source, or leave it out")
    if run[SAMPLE] != 1 and level in kind.whole_levels:
        raise UsageError(f"--level {level} needs all objects, not a sample of them", remedy="leave --sample out")


def _chosen(run: Run, place: SourceRef, text: str) -> tuple[BackupId, int]:
    """The id and size of the chosen backup. With a broken chain only a whole id can be chosen."""
    try:
        entry = read_source(place, run.clock()).completed(text)
    except Damaged:
        if not text.isdecimal():
            raise
        return BackupId(int(text)), 0
    return BackupId(entry.id), entry.summary.stored_bytes

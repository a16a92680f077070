"""`logkeep info`: what is in a backup."""

from collections.abc import Sequence

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.certificate_text import certificate_lines
from logkeep.cli.verbs.declarations import INFO
from logkeep.cli.verbs.kafka import info as kafka_info
from logkeep.cli.verbs.list import backup_table
from logkeep.cli.verbs.zookeeper import info as zookeeper_info
from logkeep.cli.wiring import chosen_sources
from logkeep.config.options import ALL, SOURCE, TOPIC
from logkeep.kafka.record.contents import KafkaReport
from logkeep.reports.contents import InfoReport, LogRow, contents_report

_SHOWN = 15


def _info_text(report: InfoReport, look: TerminalStyle) -> str:
    lines = [f"backup {report.id}: {report.state}", ""]
    lines.append(backup_table(report.members, look))
    if report.certificate is not None:
        lines += ["", *certificate_lines(report.certificate, report.certificate_verdict or "", look)]
    if report.kafka is not None:
        return "\n".join([*lines, *_kafka_lines(report, report.kafka, look)])
    if report.zookeeper is not None:
        lines += ["", *zookeeper_info.ensemble_lines(report.zookeeper, report.base, look)]
        lines += [look.line(f"GAP   {g}") for g in report.gaps]
        return "\n".join([*lines, *_finding_lines(report, look)])
    if report.kind is not None:
        identity = ", ".join(f"{k} {v}" for k, v in (report.identity or {}).items())
        base = "none, it is independent" if report.base is None else str(report.base)
        lines += ["", look.pairs({"kind": report.kind, "identity": identity, "continues": base})]
    if report.logs:
        lines += ["", _log_table(report.logs, look)]
    lines += [look.line(f"GAP   {g}") for g in report.gaps] + _finding_lines(report, look)
    return "\n".join(lines)


def _kafka_lines(report: InfoReport, found: KafkaReport, look: TerminalStyle) -> list[str]:
    if report.topic:
        details = [["", *kafka_info.topic_details(t, look)] for t in found.topics]
        return [line for some in details for line in some] + [*kafka_info.gap_lines(found.topics, look, every=True)]
    lines = ["", look.pairs(kafka_info.overview(found, report.base)), ""]
    lines += kafka_info.topic_table(found.topics, look, every=report.all)
    lines += kafka_info.gap_lines(found.topics, look, every=report.all)
    if found.groups:
        lines += ["", *kafka_info.group_table(found.groups, look, every=report.all)]
    lines += kafka_info.set_lines(found.sets, look)
    lines += ["", *kafka_info.needs_lines(found.needs, report.id, look)]
    if report.findings:
        lines += ["", *_finding_lines(report, look)]
    return lines


def _finding_lines(report: InfoReport, look: TerminalStyle) -> list[str]:
    shown = report.findings if report.all else report.findings[:_SHOWN]
    lines = [look.line(text) for text in finding_texts(shown)]
    more = len(report.findings) - len(shown)
    return [*lines, look.text(f"… and {plural(more, 'more finding')}; --all shows them")] if more else lines


def _log_table(rows: Sequence[LogRow], look: TerminalStyle) -> str:
    shown = [
        (r.log, r.history, count(r.start), count(r.end), count(r.segments), count(r.records), size(r.stored_bytes))
        for r in rows
    ]
    headers = ("LOG", "HISTORY", "FROM", "TO", "SEGMENTS", "RECORDS", "SIZE")
    return look.table(headers, shown, right="FROM,TO,SEGMENTS,RECORDS,SIZE", spare="SEGMENTS,HISTORY")


@verb(INFO, report=InfoReport, text=_info_text)
def info(run: Run, backup: str) -> InfoReport:
    one_source = run[SOURCE] is not None
    report = contents_report(chosen_sources(run), run.clock(), backup, one_source=one_source, topics=run[TOPIC])
    return msgspec.structs.replace(report, all=run[ALL])

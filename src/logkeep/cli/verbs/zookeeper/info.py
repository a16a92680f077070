"""Text of `logkeep info` for ZooKeeper: the last transaction of each member, and what can be restored."""

from collections.abc import Iterator

from logkeep.cli.terminal.text import TerminalStyle, count, size
from logkeep.cli.verbs.kafka.info import moment
from logkeep.zookeeper.repo.report import MemberReport, ZooKeeperReport

_MEMBERS = ("MEMBER", "ROLE", "VERSION", "SNAPSHOTS", "FROM", "TO", "RECORDS", "SIZE", "OLDEST", "NEWEST", "NOTES")


def ensemble_lines(report: ZooKeeperReport, base: int | None, look: TerminalStyle) -> Iterator[str]:
    facts = {
        "kind": "zookeeper",
        "history": report.history,
        "continues": "none, it is independent" if base is None else str(base),
        "reaches to": report.backup_zxid,
        "ACL schemes": ", ".join(report.schemes),
        "configs": ", ".join(report.config),
    }
    yield look.pairs({name: value for name, value in facts.items() if value})
    yield ""
    rows = [_row(member, look) for member in report.members]
    shown = slice(None if any(row[-1] for row in rows) else -1)
    yield look.table(
        _MEMBERS[shown], [row[shown] for row in rows], right="SNAPSHOTS,FROM,TO,RECORDS,SIZE",
        spare="OLDEST,SIZE,VERSION,SNAPSHOTS,RECORDS", free="NOTES", whole="NEWEST",
    )  # fmt: skip
    yield ""
    for interval in report.reachable or ("nothing",):
        yield look.line(f"can be restored: {interval}")
    for line in report.left_out:
        yield look.line(f"not kept: {line}")


def _row(member: MemberReport, look: TerminalStyle) -> tuple[str, ...]:
    return (
        member.name,
        member.role or "not asked",
        member.version or "-",
        count(member.snapshots),
        member.first or "-",
        member.last or "-",
        count(member.transactions),
        size(member.bytes),
        moment(member.oldest_ms, look),
        moment(member.newest_ms, look),
        f"unproven from {member.unproven_from}" if member.unproven_from else "",
    )

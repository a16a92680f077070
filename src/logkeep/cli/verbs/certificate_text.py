"""A certificate as lines: its verdict, and one line for each rule with the records that break it."""

from logkeep.cli.terminal.text import TerminalStyle, count, plural
from logkeep.repository.backups.certificate import CapturedMember, Certificate, RuleOutcome

_WORDS = {"held": "held", "broken": "BROKEN", "unchecked": "not checkable"}
_SHOWN = 5


def certificate_lines(certificate: Certificate, verdict: str, look: TerminalStyle) -> list[str]:
    """The verdict names every rule that is broken or not checkable."""
    read = f"{plural(certificate.records, 'record')} read · {plural(certificate.in_transit, 'message')} in transit"
    lines = [look.prose(verdict), look.text(read)]
    for rule in certificate.rules:
        lines += _rule_lines(rule, look)
    lines += [look.line(_captured(member, n)) for n, member in enumerate(certificate.captured, 1)]
    return lines + [look.line(f"not observed: {declared}") for declared in certificate.declared]


def _captured(member: CapturedMember, number: int) -> str:
    if member.started is None:
        return f"captured {number}: {member.source}, which has no completed backup of this id"
    return f"captured {number}: {member.source} ({member.kind}), begun at {member.started}"


def _rule_lines(rule: RuleOutcome, look: TerminalStyle) -> list[str]:
    about = f": {rule.what}" if rule.what else ""
    lines = [look.line(f"{rule.rule:4}{_WORDS[rule.outcome]:14}{rule.title}{about}")]
    if rule.outcome == "broken":
        lines += [look.line(f"    {record}") for record in rule.records[:_SHOWN]]
        more = rule.count - len(rule.records[:_SHOWN])
        lines += [look.text(f"    … and {count(more)} more")] if more > 0 else []
    return lines

"""How one restore looks to people: its facts and findings. `restored_rows` has its partitions and groups."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from logkeep.cli.terminal.text import TerminalStyle, count, duration, size
from logkeep.cli.verbs.restored_rows import SHOWN
from logkeep.model.findings import Finding, Severity
from logkeep.repository.restores.documents import RestoreTargetRef

_INDENT = 8
_BYTES, _PER_S = "_bytes_per_s", "_per_s"


def when(text: str | None, look: TerminalStyle) -> str:
    return look.moment(datetime.fromisoformat(text)) if text else "-"


def took(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def target_text(target: RestoreTargetRef) -> str:
    """`staging (cluster I_CW…)`; what is no cluster has a name alone."""
    if not target.cluster_id and target.name:
        return target.name
    cluster = f"cluster {target.cluster_id}"
    return f"{target.name} ({cluster})" if target.name else cluster


def rates_text(rates: Mapping[str, float]) -> str:
    """`records 12,345/s, sent 11.2 MiB/s`."""
    return ", ".join(_rate(name, rate) for name, rate in sorted(rates.items()))


def _rate(name: str, rate: float) -> str:
    if name.endswith(_BYTES):
        return f"{name.removesuffix(_BYTES)} {size(rate)}/s"
    return f"{name.removesuffix(_PER_S)} {rate:,.0f}/s"


def finding_lines(findings: Sequence[Finding], look: TerminalStyle, *, every: bool) -> list[str]:
    """Each with what to do about it, unless it is only a note."""
    shown = findings if every else findings[:SHOWN]
    lines = [line for finding in shown for line in _finding(finding, look)]
    left = len(findings) - len(shown)
    return [*lines, *([look.text(f"… and {count(left)} more findings; --json has all")] if left else [])]


def _finding(finding: Finding, look: TerminalStyle) -> list[str]:
    told = look.prose(f"{finding.severity.upper():{_INDENT}}{finding.where}: {finding.what}", indent=_INDENT)
    if not finding.remedy or finding.severity is Severity.NOTE:
        return [told]
    return [told, look.prose(f"{'':{_INDENT}}try: {finding.remedy}", indent=_INDENT + 5)]

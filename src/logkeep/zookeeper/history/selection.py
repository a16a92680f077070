"""Select the archived transactions that belong to an answer, and the log that each is read from.

A member that was cut off may hold transactions that were never committed. They are left out, and reported, if a
majority of the voters continued without them and nothing archived contradicts it: a member that was updated by a
snapshot also continued without some transactions, and those were committed. Where it is only likely, they are kept and
reported.
Members may hold different records under one zxid: those are left out. Where several members hold a transaction, the log
with the best proof is read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import epoch_of, hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import EngineFor
from logkeep.zookeeper.history.conflicts import disputed_by_members
from logkeep.zookeeper.history.pieces import gaps, history_order, pieces, without
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.model.spans import overlap
from logkeep.zookeeper.timeline.holdings import Border, BorderProof, Dispute, Holdings, Timeline
from logkeep.zookeeper.timeline.plan import Slice
from logkeep.zookeeper.timeline.survey import survey_without_disputes
from logkeep.zookeeper.timeline.timeline import known_committed, line_of, spans_of

_REMEDY_UNPROVEN = "back up a majority of the voters: then it is known how the epoch ended"
_REMEDY_DISPUTED = "the logs are not of one history: choose one of the members with --member"


@dataclass(frozen=True)
class HistorySelection:
    held: tuple[Slice, ...]
    """All parts that may be read, each of one epoch; several members hold the same transactions."""
    left_out: tuple[tuple[str, int, int], ...] = ()
    """History, first and last zxid of transactions that are held and left out."""
    findings: tuple[Finding, ...] = ()
    """What is left out, or may never have been committed, and why."""

    @property
    def parts(self) -> tuple[Slice, ...]:
        """The parts to read: every transaction once, histories in their order."""
        return pieces(self.held)

    @property
    def gaps(self) -> Iterator[Slice]:
        """Transactions that no log holds between others, each with the log before it."""
        for gap in gaps(self.parts):
            cuts = [(first, last) for history, first, last in self.left_out if history == gap.log.history]
            yield from (Slice(gap.log, first, last) for first, last in without(gap.first, gap.last, cuts))


def select_logs(view: BackupView, engine_for: EngineFor, member: str | None = None) -> HistorySelection:
    """`member`: only logs of this one. Raises UsageError for an unknown member."""
    known = sorted({log.member for log in view.logs})
    if member is not None and member not in known:
        raise UsageError(
            "no logs of this member are in the backup", subject=member, remedy=f"choose among {', '.join(known)}"
        )
    holdings = survey_without_disputes(view)
    if member is None or _is_doubted(holdings, member):
        disputed = disputed_by_members(view, holdings.logs, engine_for)
        holdings = replace(holdings, disputed=tuple(disputed))
    each = [_of_history(holdings, history, member) for history in sorted(holdings.histories, key=history_order)]
    return HistorySelection(
        tuple(piece for one in each for piece in one.held),
        tuple(cut for one in each for cut in one.left_out),
        tuple(finding for one in each for finding in one.findings),
    )


def _is_doubted(holdings: Holdings, member: str) -> bool:
    """Whether others continued without something that this member holds.

    Only then other members' logs must be compared: the member's own records are reported as they are, and members with
    another history under the same zxids say nothing about its own.
    """
    lines = {history: line_of(holdings, history) for history in holdings.histories}
    own = (span for line in lines.values() for span in line.spans if span.log.member == member)
    return any(overlap(cut, (span.first, span.last)) for span in own for cut in lines[span.log.history].abandoned)


def _of_history(holdings: Holdings, history: str, member: str | None) -> HistorySelection:
    """All members' logs decide what was committed, also if only one member's are selected."""
    line = line_of(holdings, history)
    never = [cut for cut in line.abandoned if _is_proven(holdings, line, cut)]
    logs = [log for log in holdings.logs if log.history == history and member in (None, log.member)]
    disputed = [] if member else [dispute for dispute in holdings.disputed if dispute.history == history]
    spans = [Slice(log, span.first, span.last) for log in logs for span in spans_of(log, disputed)]
    abandoned = [cut for cut in line.abandoned if any(overlap(cut, (span.first, span.last)) for span in spans)]
    held = (Slice(span.log, first, last) for span in spans for first, last in without(span.first, span.last, never))
    cuts = [*never, *((dispute.first, dispute.last) for dispute in disputed)]
    findings = [*(_abandoned(line, cut, proven=cut in never) for cut in abandoned), *_disputed(disputed)]
    return HistorySelection(tuple(held), tuple((history, *cut) for cut in cuts), tuple(findings))


def _is_proven(holdings: Holdings, line: Timeline, cut: tuple[int, int]) -> bool:
    """Whether a majority of a known number of voters continued without these, and nothing shows them as applied."""
    border = _end_of(line, epoch_of(cut[0]))
    known = holdings.voters is not None or any(member.voters is not None for member in holdings.members)
    by_majority = border is not None and border.proof is BorderProof.MAJORITY and known
    return by_majority and not known_committed(holdings, line, cut[0])


def _abandoned(line: Timeline, cut: tuple[int, int], *, proven: bool) -> Finding:
    """A majority proves how an epoch ended. Fewer members may lack its end because a snapshot updated them."""
    border, some = _end_of(line, epoch_of(cut[0])), f"transactions {hex_zxid(cut[0])} to {hex_zxid(cut[1])}"
    if proven:
        what = f"{some} are not in the answer: they were proposed and never committed"
        severity, remedy = Severity.NOTE, ""
    else:
        seen_by = ", ".join(sorted(border.seen_by)) if border is not None else ""
        continued = f"{seen_by or 'another member'} continued without them"
        what = f"{some} are in the answer, and may never have been committed: {continued}"
        severity, remedy = Severity.WARNING, _REMEDY_UNPROVEN
    where = ", ".join(sorted({span.log.member for span in line.spans if overlap(cut, (span.first, span.last))}))
    return Finding(code=Class.NEVER_COMMITTED, severity=severity, where=where, what=what, remedy=remedy)


def _end_of(line: Timeline, epoch: int) -> Border | None:
    return next((border for border in line.borders if epoch_of(border.after) > epoch), None)


def _disputed(disputed: Iterable[Dispute]) -> Iterator[Finding]:
    for dispute in disputed:
        yield Finding(
            code=Class.MEMBERS_DISAGREE,
            severity=Severity.DAMAGE,
            where=", ".join(sorted(dispute.members)),
            what=f"transactions {hex_zxid(dispute.first)} to {hex_zxid(dispute.last)} are not in the answer: "
            "these members hold different ones under the same zxids",
            remedy=_REMEDY_DISPUTED,
        )

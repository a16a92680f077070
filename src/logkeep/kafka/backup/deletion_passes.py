"""What a run knows about deleted keys of each log, pass by pass. Pure.

A log is doubtful if the run may have missed deletions in it. A pass compares the archive of doubtful logs with the live
logs, and then reads what was written since. What that read does not prove is compared by the next pass.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

from logkeep.formats.compare.vanished_keys import suspicious
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, decode_runs
from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_proof import JudgedLog, KnownLogs, judge_logs, proof_findings
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.deletions.compare_task import DeletionsFound
from logkeep.kafka.record.deletion_times import CleanupRule, DeletionTimes, cleanup_rule
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.clock_time import same_clock
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName
from logkeep.model.shell_words import shell_word

SUSPICIOUS = "deletions-suspicious"
PASSES = 3


class CompactedMode(StrEnum):
    """What a run does with compacted logs whose deletions it cannot prove."""

    AUTO = "auto"
    RECOPY = "recopy"
    INCREMENTAL = "incremental"


RECOPIED = "deletions of the old copy were not proven"
"""Why a topic is copied again."""


def copied_again(mode: CompactedMode, doubtful: Collection[LogName], unreadable: Collection[LogName]) -> dict[str, str]:
    """Topics to copy again, and why. In any mode those with burials that cannot be read: no later backup could be
    restored."""
    again = {log.name: RECOPIED for log in doubtful if mode is CompactedMode.RECOPY}
    return again | {log.name: "its buried offsets are missing or damaged" for log in unreadable}


@dataclass(frozen=True)
class DeletionPasses:
    """The logs after some passes."""

    judged: Mapping[LogName, JudgedLog]
    facts: Facts
    ends: Mapping[LogName, int]
    found: Mapping[LogName, DeletionsFound] = field(default_factory=dict)
    """The last comparison of each log that was compared; the last complete one, if there is one."""
    accepted: frozenset[str] = frozenset()
    """Topics whose deletions the user accepts, however many they are."""
    suspected: Mapping[str, Finding] = field(default_factory=dict)
    """By log: what a comparison found a short time ago. They are not compared again, and nothing of them is proven."""

    def doubtful(self) -> tuple[LogName, ...]:
        """Logs to compare: unproven ones that are not Kafka's own, or that the user named, and not suspicious."""
        internal = {t.name for t in self.facts.topics if is_internal(t.name, t.internal)} - self.facts.named
        return tuple(
            log
            for log, each in self.judged.items()
            if each.unproven is not None
            and log.name not in internal
            and not self._suspicious(log)
            and not self._suspected(log)
        )

    def compared(self, results: Iterable[DeletionsFound], *, last: bool) -> "DeletionPasses":
        """The state after a comparison: what was archived before it is proven. A log with `odd` keys is compared again
        by the next pass; the `last` pass leaves only logs with `unclear` keys unproven.

        A comparison that is not complete leaves an earlier complete one in force: what that one proved is not compared
        again.
        """
        results = tuple(results)
        found = {each.log: each for each in results if not (each.problem and self._complete(each.log))}
        after = replace(self, found={**self.found, **found})
        cleared = {
            each.log: _cleared(self.judged[each.log], each)
            for each in results
            if not each.problem and not after._suspicious(each.log) and not (each.unclear if last else each.odd)
        }
        return replace(after, judged={**self.judged, **cleared})

    def extended(self, facts: Facts, added: Assembled) -> "DeletionPasses":
        """The state after the copy of what was written since: only that is judged.

        Where something is buried, only density counts as proof. A key may be gone from the archived offsets because a
        later value replaced it, and that value may be replaced and cleaned before it is read: then no value would be
        left.
        """
        buried = self.buried()
        added = replace(added, times={log: read for log, read in added.times.items() if log not in buried})
        reached = {
            TopicPartition(log.name, log.partition): ArchivedReach(
                log.history, self.ends[log], -1, deletions=each.times
            )
            for log, each in self.judged.items()
        }
        rules = {
            log.name: _rule(facts, log.name, each) for log, each in self.judged.items() if log.name in facts.configs
        }
        judged = judge_logs(KnownLogs(reached, rules, {}), facts, added)
        whys = {log: each.why for log, each in self.judged.items()}
        judged = {
            log: replace(each, why=_why(each, whys.get(log, ""), log in buried)) if each.unproven is not None else each
            for log, each in judged.items()
        }
        return replace(self, judged=judged, facts=facts, ends={c.log: c.end for c in added.cut})

    def _complete(self, log: LogName) -> bool:
        each = self.found.get(log)
        return each is not None and not each.problem

    def _suspected(self, log: LogName) -> bool:
        return str(log) in self.suspected and log.name not in self.accepted

    def _suspicious(self, log: LogName) -> bool:
        each = self.found.get(log)
        return each is not None and log.name not in self.accepted and suspicious(each.keys, each.vanished)

    def buried(self) -> dict[LogName, BuriedOffsets]:
        """The offsets that this run buries, by log."""
        runs = {
            log: decode_runs(each.runs, str(log))
            for log, each in self.found.items()
            if log in self.judged and not each.problem and not self._suspicious(log)
        }
        return {log: offsets for log, offsets in runs.items() if offsets.count}

    def held_back(self) -> tuple[LogName, ...]:
        return tuple(log for log in self.found if log in self.judged and self._suspicious(log))

    def times(self, whole: Assembled, buried: Mapping[LogName, int]) -> dict[LogName, DeletionTimes | None]:
        """What the record keeps: read times over all receipts, and how many offsets are buried in this backup."""
        return {log: _recorded(each, whole, buried.get(log, 0)) for log, each in self.judged.items()}

    def findings(self) -> list[Finding]:
        held = set(self.held_back())
        known = {log for log, each in self.judged.items() if each.unproven is not None and self._suspected(log)} - held
        plain = [each for each in self.judged.values() if each.log not in held | known]
        again = [self.suspected[str(log)] for log in sorted(known)]
        return [*proof_findings(plain, self.facts), *again, *(_suspicion(self.found[log]) for log in sorted(held))]


def first_pass(
    judged: Mapping[LogName, JudgedLog],
    facts: Facts,
    assembled: Assembled,
    accepted: Collection[str] = (),
    suspected: Mapping[str, Finding] | None = None,
) -> DeletionPasses:
    ends = {c.log: c.end for c in assembled.cut}
    return DeletionPasses(judged, facts, ends, accepted=frozenset(accepted), suspected=suspected or {})


def _cleared(judged: JudgedLog, found: DeletionsFound) -> JudgedLog:
    if judged.times is None:
        return judged
    times = msgspec.structs.replace(
        judged.times,
        cut_ms=found.begin.ms,
        clock=found.begin.clock,
        host=found.begin.host,
        unproven_from=-1,
        unproven_to=-1,
    )
    return replace(judged, times=times, why="")


def _why(judged: JudgedLog, before: str, buried: bool) -> str:
    if judged.why and buried:
        return "the log was cleaned while it was compared, and offsets are missing among those that came since"
    return judged.why or before


def _rule(facts: Facts, topic: str, judged: JudgedLog) -> CleanupRule:
    now = cleanup_rule(facts.configs[topic].own, facts.configs[topic].inherited)
    least = judged.times.retention_ms if judged.times is not None else now.retention_ms
    return CleanupRule(now.compacts, min(now.retention_ms, least))


def _recorded(judged: JudgedLog, whole: Assembled, buried: int) -> DeletionTimes | None:
    if judged.times is None:
        return None
    read = whole.times.get(judged.log)
    same = read is not None and same_clock(read, judged.times)
    return msgspec.structs.replace(
        judged.times,
        read_begin_ms=read.begin_ms if read is not None and same else -1,
        read_end_ms=read.end_ms if read is not None and same else -1,
        buried=buried,
    )


def _suspicion(found: DeletionsFound) -> Finding:
    return Finding(
        code=SUSPICIOUS,
        severity=Severity.WARNING,
        where=str(found.log),
        what=f"{found.vanished:,} of {plural(found.keys, 'key')} are gone from the live log, and no tombstone of "
        "them is archived; nothing was buried, so a restore brings them back, and an earlier backup is held",
        remedy=f"if they were meant to be deleted: --accept-deletions {shell_word(found.log.name)}, then release the "
        "backup that is held (`logkeep list` shows it); if not, restore the topic from that backup",
    )

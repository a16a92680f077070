"""Retention: which bundles of a directory are pruned, and why. Pure.

The rules are those of `repository.upkeep.retention`, for three of its settings:

- **Age.** Bundles older than `keep_days` are deleted; an age of exactly the limit is kept. 0 is no rule.
- **Count.** Of the others only the newest `keep_count` are kept, however young the rest is. 0 is no rule.
- **Floor.** The newest `keep_min_count` good ones are safe from both, and the newest good one always is.
- **Only good ones count.** A damaged bundle is not counted. Where age or count would delete it, it is skipped, as it
  may hold what no other does; `delete_damaged` deletes it, unless there is no good one at all.
- **Unverified ones do not count.** Such a bundle may be good or not: it is not counted, and not deleted before it was
  verified.
- **A bundle from the future** is kept and not counted: its clock was wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from logkeep.repository.upkeep.retention import Candidate, Policy, decide
from logkeep.zookeeper.model.condition import Condition


@dataclass(frozen=True, kw_only=True)
class BundleRetention:
    keep_days: int = 7
    keep_count: int = 0
    keep_min_count: int = 3
    delete_damaged: bool = False


@dataclass(frozen=True, kw_only=True)
class AgedBundle:
    """What retention needs to know of one bundle."""

    name: str
    taken: datetime
    condition: Condition

    @property
    def good(self) -> bool:
        return self.condition in {Condition.VALID, Condition.PARTIAL}

    @property
    def damaged(self) -> bool:
        return self.condition is Condition.DAMAGED


class Fate(StrEnum):
    KEEP = "keep"
    """No rule applies to it."""
    PROTECTED = "protected"
    """A rule applies to it, and it is among the newest good ones."""
    SKIP = "skip"
    """A rule applies to it, and it is damaged or was never verified."""
    DELETE = "delete"


@dataclass(frozen=True)
class BundleFate:
    name: str
    fate: Fate
    reasons: tuple[str, ...]


def judge(bundles: Sequence[AgedBundle], rules: BundleRetention, now: datetime) -> list[BundleFate]:
    """One verdict for each bundle, newest first; bundles of the same time are ordered by name."""
    ordered = sorted(bundles, key=lambda bundle: (bundle.taken, bundle.name))
    policy = Policy(
        keep_days=rules.keep_days or None, keep_count=rules.keep_count or None, keep_min_count=rules.keep_min_count
    )
    candidates = [
        Candidate(id=place, generation=place, committed=bundle.taken, good=bundle.good, damaged=bundle.damaged)
        for place, bundle in enumerate(ordered)
    ]
    verdicts, delete_damaged = [], rules.delete_damaged and any(bundle.good for bundle in ordered)
    for bundle, verdict in zip(ordered, decide(candidates, policy, now), strict=True):
        unwanted = _why_deleted(bundle, ordered, rules, now)
        verdicts.append(_verdict(bundle, verdict.keep, verdict.reasons, unwanted, delete_damaged))
    return verdicts[::-1]


def _verdict(
    bundle: AgedBundle, keep: bool, reasons: tuple[str, ...], unwanted: str, delete_damaged: bool
) -> BundleFate:
    if not bundle.good:
        if not unwanted:
            return BundleFate(bundle.name, Fate.KEEP, (f"{bundle.condition}: not counted",))
        fate = Fate.DELETE if bundle.damaged and delete_damaged else Fate.SKIP
        return BundleFate(bundle.name, fate, (bundle.condition.value, unwanted))
    if not keep:
        return BundleFate(bundle.name, Fate.DELETE, reasons)
    return BundleFate(bundle.name, Fate.PROTECTED if unwanted else Fate.KEEP, reasons)


def _why_deleted(bundle: AgedBundle, ordered: Sequence[AgedBundle], rules: BundleRetention, now: datetime) -> str:
    """Why age or count would delete it; empty when neither would."""
    if bundle.taken > now:
        return ""
    if rules.keep_days and now - bundle.taken > timedelta(days=min(rules.keep_days, 999_999_999)):
        return f"older than {rules.keep_days} days"
    newer = sum(other.good and bundle.taken < other.taken <= now for other in ordered)
    if rules.keep_count and newer >= rules.keep_count:
        return f"more than {rules.keep_count} backups"
    return ""

"""Which bundles of a directory are pruned, and why: values in, values out.

The rules are those of `repository.retention`, for three of its settings:

- **Age.** What is older than `keep_days` goes; an age of exactly the limit stays. 0 is no rule.
- **Count.** Of what is left only the newest `keep_count` stay, however young the others are. 0 is no rule.
- **Floor.** The newest `keep_min_count` good ones are safe from both, and the newest good one always is.
- **Only good ones count.** A damaged bundle fills no place. Where age or count would take it, it is skipped, as it may
  hold what no other does; `delete_damaged` lets it go, unless there is no good one at all.
- **Nor do unverified ones.** Such a bundle may be whole and may not be: it fills no place, and nothing takes it before
  somebody has looked.
- **A bundle from the future** stays and fills no place: its clock was wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from logkeep.repository.upkeep.retention import Candidate, Policy, decide
from logkeep.zookeeper.model.condition import Condition


@dataclass(frozen=True, kw_only=True)
class Rules:
    keep_days: int = 7
    keep_count: int = 0
    keep_min_count: int = 3
    delete_damaged: bool = False


@dataclass(frozen=True, kw_only=True)
class Aged:
    """One bundle as far as its keeping is concerned."""

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
    """No rule wants it gone."""
    PROTECTED = "protected"
    """A rule wants it gone, and it is among the newest good ones."""
    SKIP = "skip"
    """A rule wants it gone, and it is damaged or was never verified."""
    DELETE = "delete"


@dataclass(frozen=True)
class BundleFate:
    name: str
    fate: Fate
    reasons: tuple[str, ...]


def judge(bundles: Sequence[Aged], rules: Rules, now: datetime) -> list[BundleFate]:
    """One verdict for each bundle, newest first; of bundles of one moment the name decides."""
    ordered = sorted(bundles, key=lambda bundle: (bundle.taken, bundle.name))
    policy = Policy(
        keep_days=rules.keep_days or None, keep_count=rules.keep_count or None, keep_min_count=rules.keep_min_count
    )
    candidates = [
        Candidate(id=place, generation=place, committed=bundle.taken, good=bundle.good, damaged=bundle.damaged)
        for place, bundle in enumerate(ordered)
    ]
    verdicts = []
    for bundle, verdict in zip(ordered, decide(candidates, policy, now), strict=True):
        unwanted = _unwanted(bundle, ordered, rules, now)
        verdicts.append(_verdict(bundle, verdict.keep, verdict.reasons, unwanted, _goes(ordered, rules)))
    return verdicts[::-1]


def _verdict(bundle: Aged, keep: bool, reasons: tuple[str, ...], unwanted: str, damaged_goes: bool) -> BundleFate:
    if not bundle.good:
        if not unwanted:
            return BundleFate(bundle.name, Fate.KEEP, (f"{bundle.condition}: not counted",))
        fate = Fate.DELETE if bundle.damaged and damaged_goes else Fate.SKIP
        return BundleFate(bundle.name, fate, (bundle.condition.value, unwanted))
    if not keep:
        return BundleFate(bundle.name, Fate.DELETE, reasons)
    return BundleFate(bundle.name, Fate.PROTECTED if unwanted else Fate.KEEP, reasons)


def _goes(ordered: Sequence[Aged], rules: Rules) -> bool:
    return rules.delete_damaged and any(bundle.good for bundle in ordered)


def _unwanted(bundle: Aged, ordered: Sequence[Aged], rules: Rules, now: datetime) -> str:
    """Why age or count would take it; empty when neither would."""
    if bundle.taken > now:
        return ""
    if rules.keep_days and now - bundle.taken > timedelta(days=min(rules.keep_days, 999_999_999)):
        return f"older than {rules.keep_days} days"
    newer = sum(other.good and bundle.taken < other.taken <= now for other in ordered)
    if rules.keep_count and newer >= rules.keep_count:
        return f"more than {rules.keep_count} backups"
    return ""

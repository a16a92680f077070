"""Retention: which backups of one source a policy keeps, and why. Pure.

How the rules work together:

- **Rules keep.** `keep_last`, `keep_hourly` … `keep_yearly`, `keep_within`, `keep_days` and `keep_tags` are a union: a
  backup stays if any of them keeps it. Zero and None are no rule. A policy without any rule removes nothing.
- **`keep_count` bounds.** Of what the rules keep (of everything, without other rules) only the newest N stay, however
  young the others are. The position in that order decides, so an old held backup never displaces a newer one.
- **Some are safe from both**: the newest good backup, the `keep_min_count` newest good ones, held ones, tagged ones.
  `keep_min_count` is 3 when `keep_days` or `keep_count` is given and it is not; by itself it is a floor, not a rule.
- **Only good backups count.** A damaged or unfinished one takes no position and no bucket. It stays, unless it is
  damaged and `delete_damaged` is set; even then it stays while the source has no good backup.
- **A backup dated in the future** stays and takes no position or bucket: its clock was wrong, and a wrong clock must
  not displace good backups.

Newest means last committed, whatever the clocks were. Buckets are hours, days, ISO weeks (`2026-W46`), months and
years of the commit time in UTC; the latest N buckets that hold a backup count, and the newest backup of each stays.

Ages, `keep_within` as well as `keep_days`, are measured back from now, and an age of exactly the limit is kept.
(restic measures its keep-within from the latest snapshot, so that a source which is no longer backed up keeps its
history. Here both rules measure alike, and "within 14d" is by the calendar; the floor and the newest good backup
protect a source that is no longer backed up, and `keep_last` protects more of them.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from logkeep.errors import UsageError

_DEFAULT_FLOOR = 3

_BUCKETS: tuple[tuple[str, str], ...] = (
    ("hourly", "{0.year:04}-{0.month:02}-{0.day:02}T{0.hour:02}"),
    ("daily", "{0.year:04}-{0.month:02}-{0.day:02}"),
    ("weekly", "{1.year:04}-W{1.week:02}"),
    ("monthly", "{0.year:04}-{0.month:02}"),
    ("yearly", "{0.year:04}"),
)
"""The name of each bucket rule, and its bucket written from a UTC time {0} and its ISO week {1}: sorts as time does."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The facts about one backup that retention needs."""

    id: int
    committed: datetime
    good: bool
    """Completed, and not known to be damaged."""
    damaged: bool = False
    held: bool = False
    hold_reason: str = ""
    tags: tuple[str, ...] = ()
    generation: int = 0
    """The generation of the commit. It orders the candidates; if it is equal or not given, the order of the sequence
    counts."""

    def __post_init__(self) -> None:
        if self.committed.tzinfo is None:
            raise ValueError(f"backup {self.id} has a commit time without a zone")
        if self.good and self.damaged:
            raise ValueError(f"backup {self.id} cannot be good and damaged")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What to keep. The module docstring says how the rules work together."""

    keep_last: int | None = None
    keep_hourly: int | None = None
    keep_daily: int | None = None
    keep_weekly: int | None = None
    keep_monthly: int | None = None
    keep_yearly: int | None = None
    keep_within: timedelta | None = None
    keep_tags: tuple[str, ...] = ()
    keep_days: int | None = None
    keep_count: int | None = None
    keep_min_count: int | None = None
    delete_damaged: bool = False
    """A permission, not a rule: without a rule nothing is removed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if (isinstance(value, int) and value < 0) or (isinstance(value, timedelta) and value < timedelta(0)):
                flag = "--" + field.name.replace("_", "-")
                raise UsageError(f"{flag} must not be negative", remedy=f"omit {flag}, or pass 0, for no rule")

    @property
    def keeps_by_rule(self) -> bool:
        """Whether a rule selects what to keep; without one, `keep_count` applies to everything."""
        return self._selects_by_position or bool(self.keep_within or self.keep_days)

    @property
    def empty(self) -> bool:
        return not (self.keeps_by_rule or self.keep_count)

    @property
    def floor(self) -> int:
        """How many of the newest good backups are safe from every rule."""
        if self.keep_min_count is None:
            return _DEFAULT_FLOOR if self.keep_days or self.keep_count else 0
        return self.keep_min_count

    @property
    def _selects_by_position(self) -> bool:
        return bool(self.keep_last or self.keep_tags or any(self.buckets(name) for name, _ in _BUCKETS))

    def buckets(self, name: str) -> int:
        """How many buckets the rule with this name keeps: `daily` → `keep_daily`."""
        return int(getattr(self, f"keep_{name}") or 0)

    def removal_reasons(self) -> tuple[str, ...]:
        """Why a backup that no rule keeps is removed."""
        reasons = []
        if self.keep_days:
            reasons.append(f"older than {_count(self.keep_days, 'day')}")
        if self.keep_within:
            reasons.append(f"not within {_duration(self.keep_within)}")
        if self._selects_by_position:
            reasons.append("no rule keeps it")
        return tuple(reasons)


@dataclass(frozen=True)
class RetentionVerdict:
    """Whether a backup stays, and every reason, ready to be printed."""

    id: int
    keep: bool
    reasons: tuple[str, ...]


class _Reasons:
    """Why backups stay, collected rule by rule."""

    def __init__(self) -> None:
        self._by_id: dict[int, list[str]] = {}

    def add(self, candidate: Candidate, reason: str) -> None:
        self._by_id.setdefault(candidate.id, []).append(reason)

    def of(self, candidate: Candidate) -> tuple[str, ...]:
        return tuple(self._by_id.get(candidate.id, ()))


def decide(candidates: Sequence[Candidate], policy: Policy, now: datetime) -> list[RetentionVerdict]:
    """One verdict for each backup of one source, in the order in which they were committed."""
    ordered = sorted(candidates, key=lambda c: c.generation)
    if len({c.id for c in ordered}) != len(ordered):
        raise ValueError("two candidates have the same backup id")
    if policy.empty:
        return [RetentionVerdict(c.id, True, ("no policy",)) for c in ordered]
    counted = [c for c in reversed(ordered) if c.good and c.committed <= now]
    safe = _safe(ordered, counted, policy)
    wanted = _kept_by_rules(counted, policy, now)
    surplus = _surplus(counted, policy, safe, wanted)
    any_good = any(c.good for c in ordered)

    def judge(candidate: Candidate) -> RetentionVerdict:
        if candidate.committed > now:
            return RetentionVerdict(candidate.id, True, ("dated in the future", *safe.of(candidate)))
        if not candidate.good:
            return _judge_not_good(candidate, policy, safe.of(candidate), any_good)
        if candidate.id in surplus:
            return RetentionVerdict(candidate.id, False, (f"more than {_count(policy.keep_count or 0, 'backup')}",))
        reasons = wanted.of(candidate) + safe.of(candidate)
        return RetentionVerdict(candidate.id, bool(reasons), reasons or policy.removal_reasons())

    return [judge(c) for c in ordered]


def _judge_not_good(candidate: Candidate, policy: Policy, safe: tuple[str, ...], any_good: bool) -> RetentionVerdict:
    if not candidate.damaged:
        return RetentionVerdict(candidate.id, True, (*safe, "not completed: not counted, not deleted"))
    if not policy.delete_damaged:
        return RetentionVerdict(candidate.id, True, (*safe, "damaged: not counted, not deleted; pass --delete-damaged"))
    if safe:
        return RetentionVerdict(candidate.id, True, safe)
    if not any_good:
        return RetentionVerdict(candidate.id, True, ("damaged, but there is no good backup",))
    return RetentionVerdict(candidate.id, False, ("damaged",))


def _safe(ordered: Sequence[Candidate], counted: Sequence[Candidate], policy: Policy) -> _Reasons:
    """Backups that are always kept. `counted` is newest first."""
    reasons = _Reasons()
    for candidate in ordered:
        if candidate.held:
            reasons.add(candidate, f"held: {candidate.hold_reason}" if candidate.hold_reason else "held")
        for tag in policy.keep_tags:
            if tag in candidate.tags:
                reasons.add(candidate, f"tag {tag}")
    for candidate in counted[:1]:
        reasons.add(candidate, "newest good backup")
    for candidate in counted[: policy.floor]:
        newest = f"the {policy.floor} newest good backups" if policy.floor > 1 else "the newest good backup"
        reasons.add(candidate, f"among {newest}")
    return reasons


def _kept_by_rules(counted: Sequence[Candidate], policy: Policy, now: datetime) -> _Reasons:
    """What the rules keep; everything, if `keep_count` is the only rule."""
    reasons = _Reasons()
    last = policy.keep_last or 0
    for place, candidate in enumerate(counted[:last], start=1):
        reasons.add(candidate, f"last {place} of {last}")
    for name, pattern in _BUCKETS:
        _fill_buckets(reasons, counted, name, pattern, policy.buckets(name))
    for candidate in counted:
        for reason in _age_reasons(now - candidate.committed, policy):
            reasons.add(candidate, reason)
    if not policy.keeps_by_rule:
        for place, candidate in enumerate(counted[: policy.keep_count], start=1):
            reasons.add(candidate, f"backup {place} of at most {policy.keep_count}")
    return reasons


def _fill_buckets(reasons: _Reasons, counted: Iterable[Candidate], name: str, pattern: str, limit: int) -> None:
    newest: dict[str, Candidate] = {}
    for candidate in counted:
        newest.setdefault(_bucket(candidate, pattern), candidate)
    for bucket in sorted(newest, reverse=True)[:limit]:
        reasons.add(newest[bucket], f"{name} {bucket}")


def _bucket(candidate: Candidate, pattern: str) -> str:
    moment = candidate.committed.astimezone(UTC)
    return pattern.format(moment, moment.isocalendar())


def _age_reasons(age: timedelta, policy: Policy) -> Iterable[str]:
    if policy.keep_within and age <= policy.keep_within:
        yield f"within {_duration(policy.keep_within)}"
    # Compared as whole days and a rest: a timedelta of very many days does not exist.
    if policy.keep_days and (age.days, age - timedelta(days=age.days)) <= (policy.keep_days, timedelta(0)):
        yield f"younger than {_count(policy.keep_days, 'day')}"


def _surplus(counted: Sequence[Candidate], policy: Policy, safe: _Reasons, wanted: _Reasons) -> frozenset[int]:
    """What the rules keep beyond the newest `keep_count`, without backups that are always kept."""
    if not policy.keep_count:
        return frozenset()
    kept = [c for c in counted if not policy.keeps_by_rule or wanted.of(c) or safe.of(c)]
    return frozenset(c.id for c in kept[policy.keep_count :] if not safe.of(c))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(span: timedelta) -> str:
    """`14d`, `1d12h`, `90s` → `1m30s`: only the parts that are there."""
    seconds = int(span.total_seconds())
    parts = (("d", seconds // 86400), ("h", seconds // 3600 % 24), ("m", seconds // 60 % 60), ("s", seconds % 60))
    return "".join(f"{value}{unit}" for unit, value in parts if value) or f"{span.microseconds}us"

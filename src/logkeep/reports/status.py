"""The state of each source: the newest good backup, its age and lag, what runs, what was interrupted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from logkeep.errors import Damaged, FormatTooNew, UnsafeName
from logkeep.kinds import kind_named
from logkeep.model.findings import DELETION_DOUBTS
from logkeep.model.time import Rfc3339
from logkeep.reports.backups import BackupRow, VerifiedText, backup_row, health_of, read_source
from logkeep.reports.restores import LastRestore, last_of_all, last_of_each
from logkeep.reports.stored_size import StoredSize, stored_size, total_size
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import SourceView, read_manifest
from logkeep.repository.backups.states import Completed, Failed, Ongoing, State
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.freshness import Freshness, read_freshness
from logkeep.repository.chain.lease import LeaseState
from logkeep.repository.chain.roles import InstanceRole, instances

_CLOCK_TOLERANCE = timedelta(minutes=3)


@dataclass(frozen=True)
class Objectives:
    max_age: timedelta | None = None
    max_lag: int | None = None
    max_standby_age: timedelta | None = None

    @property
    def any(self) -> bool:
        return any(each is not None for each in (self.max_age, self.max_lag, self.max_standby_age))

    def standby_breached(self, found: "Sequence[InstanceStatus]") -> bool:
        """No passive instance has reported within the objective."""
        most = self.max_standby_age
        waiting = (each.age_seconds for each in found if each.role == InstanceRole.PASSIVE)
        return most is not None and not any(age <= most.total_seconds() for age in waiting)

    def breached(self, age: timedelta | None, lag_offsets: int | None) -> bool:
        """An unknown value breaches an objective."""
        unknown = age is None or age < -_CLOCK_TOLERANCE
        too_old = self.max_age is not None and (unknown or (age is not None and age > self.max_age))
        return too_old or (self.max_lag is not None and (lag_offsets is None or lag_offsets > self.max_lag))


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of `kafka backup --standby`."""

    instance: str
    role: str
    """`active` or `passive`, when it last reported."""
    seen: Rfc3339
    age_seconds: float
    owner: str


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    newest_good: int | None
    newest_good_committed: Rfc3339 | None
    age_seconds: float | None
    """Since the newest good backup was committed, or since a run with --follow found nothing newer."""
    objective_seconds: float | None
    breached: bool
    """The newest good backup is older than the objective or lacks more than it, or there is none."""
    backups: int
    damaged: tuple[int, ...]
    interrupted: tuple[int, ...]
    """Backups whose process has died: the next run records them as failed, or resumes them."""
    running: str | None
    last_verified: VerifiedText | None
    """Deprecated: `last_verified_at` and `last_verified_level` in one text."""
    warnings: tuple[str, ...]
    last_look: Rfc3339 | None = None
    """When a run with --follow last compared the source with the newest good backup."""
    lag_offsets: int | None = None
    """Offsets that the source had beyond the newest good backup then; null when that is not known."""
    objective_lag_offsets: int | None = None
    deletions_left_seconds: float | None = None
    """Until the next backup can no longer prove by time that it read every deletion of compacted topics; below 0: that
    time has passed, and it proves them in other ways. Null: no such topic has times."""
    last_restore: LastRestore | None = None
    """The restore or drill of any backup that ended last."""
    last_verified_at: Rfc3339 | None = None
    """The latest of the verifications that count, one for each backup: a weaker one hides no deeper one."""
    last_verified_level: str | None = None
    size: StoredSize | None = None
    """Null for a source that cannot be read."""
    instances: tuple[InstanceStatus, ...] = ()
    """Of `kafka backup --standby`, by name."""


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[SourceStatus, ...]
    breached: bool
    """Any source breaches the objective, or there is an objective and no source at all."""
    size: StoredSize
    """Of all these sources together."""


def status_report(
    places: Sequence[SourceRef],
    now: datetime,
    objectives: Objectives,
    state_of: Callable[[SourceRef], SourceRef],
    url: str,
) -> StatusReport:
    """`state_of` opens the place of a source's restores; `url` names the repository where there is no source."""
    sources = tuple(_status_or_trouble(place, now, objectives, state_of) for place in places)
    return StatusReport(
        url=places[0].store.url if places else url,
        sources=sources,
        breached=any(one.breached for one in sources) or (objectives.any and not sources),
        size=total_size(one.size for one in sources),
    )


def _status_or_trouble(
    place: SourceRef, now: datetime, objectives: Objectives, state_of: Callable[[SourceRef], SourceRef]
) -> SourceStatus:
    """A source that cannot be read must not hide the others. It has no good backup."""
    try:
        found = _status(place, now, objectives)
        return msgspec.structs.replace(found, last_restore=last_of_all(last_of_each(lambda: state_of(place)).values()))
    except (Damaged, UnsafeName, FormatTooNew) as error:
        return SourceStatus(
            source=place.source,
            newest_good=None,
            newest_good_committed=None,
            age_seconds=None,
            objective_seconds=_seconds(objectives.max_age),
            breached=objectives.any,
            backups=0,
            damaged=(),
            interrupted=(),
            running=None,
            last_verified=None,
            warnings=(f"{error}; {error.remedy}",),
            objective_lag_offsets=objectives.max_lag,
        )


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None


def _status(place: SourceRef, now: datetime, objectives: Objectives) -> SourceStatus:
    view, health = read_source(place, now), health_of(place)
    states = view.states()
    rows = [backup_row(place.source, s, health, now) for s in states if isinstance(s, Completed)]
    good = [r for r in rows if r.health != "damaged" and r.committed]
    newest = good[-1] if good else None
    check = last_check(read_freshness(place), newest.id if newest else None, now)
    since = check.looked if check else newest.committed if newest else None
    age = now - datetime.fromisoformat(since) if since else None
    lag = check.lag_offsets if check and age is not None and age.total_seconds() <= check.next_within_s else None
    verified = _last_verified(rows)
    # A run that follows keeps the times of rounds without news in memory: when it has ended, only the record counts.
    following = check if lag is not None else None
    doubts, left_s = _deletions(place, view, newest.id, following, now) if newest else ((), None)
    together = _instances(place, now)
    return SourceStatus(
        source=place.source,
        newest_good=newest.id if newest else None,
        newest_good_committed=newest.committed if newest else None,
        age_seconds=_seconds(age),
        objective_seconds=_seconds(objectives.max_age),
        breached=objectives.breached(age, lag) or objectives.standby_breached(together),
        backups=len(rows),
        damaged=tuple(r.id for r in rows if r.health == "damaged"),
        interrupted=tuple(s.id for s in states if isinstance(s, Failed) and not s.recorded),
        running=_running(view, states),
        last_verified=verified.verified if verified else None,
        warnings=(
            *view.warnings,
            *_future(newest.id if newest else None, age),
            *_stale(check, lag),
            *doubts,
        ),
        last_look=check.looked if check else None,
        lag_offsets=lag,
        objective_lag_offsets=objectives.max_lag,
        last_verified_at=verified.verified_at if verified else None,
        last_verified_level=verified.verified_level if verified else None,
        size=stored_size(place),
        deletions_left_seconds=left_s,
        instances=together,
    )


def _running(view: SourceView, states: Iterable[State]) -> str | None:
    """The run that holds the lease; no run does while the partitions of an application copy."""
    if view.lease_state is LeaseState.HELD and view.lease is not None:
        return f"{view.lease.operation} by {view.lease.owner}, since {view.lease.acquired}"
    ongoing = [state for state in states if isinstance(state, Ongoing)]
    return f"backup {ongoing[-1].id}, since {ongoing[-1].request.started}" if ongoing else None


def _instances(place: SourceRef, now: datetime) -> tuple[InstanceStatus, ...]:
    return tuple(
        InstanceStatus(
            instance=each.instance,
            role=each.role,
            seen=each.seen,
            age_seconds=(now - datetime.fromisoformat(each.seen)).total_seconds(),
            owner=str(each.owner),
        )
        for each in sorted(instances(place), key=lambda each: each.instance)
    )


def _last_verified(rows: Iterable[BackupRow]) -> BackupRow | None:
    """The backup with the latest of the verifications that count; all times have the same form."""
    return max((row for row in rows if row.verified), key=lambda row: row.verified_at or "", default=None)


def _deletions(
    place: SourceRef, view: SourceView, newest_good: int, check: Freshness | None, now: datetime
) -> tuple[tuple[str, ...], float | None]:
    """What the newest good backup does not prove, and the seconds in which the next one must read deletions."""
    entry = view.folded.entry(newest_good)
    if entry is None:
        return (), None
    seen = int(datetime.fromisoformat(check.looked).timestamp() * 1000) if check else -1
    try:
        manifest = read_manifest(place, entry)
        left = kind_named(manifest.kind).deletions_left(place, manifest, int(now.timestamp() * 1000), seen)
        return _doubts(place, view, manifest), left
    except Damaged as error:
        return (f"backup {newest_good}: {error}; verify it",), None


def last_check(found: Freshness | None, newest_good: int | None, now: datetime) -> Freshness | None:
    """The last check, if it was of the newest good backup. One from the future only shows a wrong clock."""
    if found is None or found.backup != newest_good:
        return None
    return found if datetime.fromisoformat(found.looked) <= now + _CLOCK_TOLERANCE else None


def _stale(check: Freshness | None, lag: int | None) -> tuple[str, ...]:
    if check is None or lag is not None:
        return ()
    return ("the run that follows this source has not reported for too long: its lag is not known",)


def _future(newest: int | None, age: timedelta | None) -> tuple[str, ...]:
    if age is None or age > -_CLOCK_TOLERANCE:
        return ()
    return (
        f"backup {newest} is dated in the future: the clock of this machine or of the machine that took it is wrong",
    )


def _doubts(place: SourceRef, view: SourceView, manifest: Manifest) -> tuple[str, ...]:
    """What the newest good backup does not prove. Logs of many topics are one line."""
    doubts = [f for f in manifest.findings if f.code in DELETION_DOUBTS]
    doubts += kind_named(manifest.kind).doubts(place, view.folded, manifest)
    if not doubts:
        return ()
    more = f" and {len(doubts) - 1} more logs" if len(doubts) > 1 else ""
    return (
        f"{doubts[0].code}: {doubts[0].where}{more} in backup {manifest.id}; `logkeep info {manifest.id}` says why",
    )

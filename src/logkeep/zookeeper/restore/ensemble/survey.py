"""Survey one host before an ensemble is restored, and check that surveys of several hosts belong together.

The order is: stop all members, survey every host, make one plan of all surveys, apply it on every host. A survey of a
running server can be read, but no plan is made from it: the server's epoch may grow until it is stopped.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from logkeep.errors import LogkeepError, TargetUnsafe, UsageError
from logkeep.model.time import rfc3339
from logkeep.zookeeper.restore.ensemble.documents import HostSurvey, MemberSurvey
from logkeep.zookeeper.restore.ensemble.host_identity import HostIdentity, directory_id, is_one_directory, this_host
from logkeep.zookeeper.restore.obstacles import logs_elsewhere
from logkeep.zookeeper.restore.target.checks import check_swappable, interrupted_restores
from logkeep.zookeeper.restore.target.directories import place_of
from logkeep.zookeeper.restore.target.running_server import Ask, ask_server, find_running_servers
from logkeep.zookeeper.restore.target.state import NO_FILES_FINGERPRINT, read_contents
from logkeep.zookeeper.restore.values import ServerTarget

MAX_AGE: Final = timedelta(hours=24)
"""An older survey or plan is refused: servers may have been started since."""
_CLOCKS_DIFFER: Final = timedelta(minutes=5)


def survey_host(
    targets: Sequence[tuple[str, ServerTarget]],
    machine: str,
    now: datetime,
    *,
    identity: HostIdentity | None = None,
    ask: Ask = ask_server,
) -> HostSurvey:
    """`targets`: names and directories of the members. Raises UsageError or TargetUnsafe."""
    members = tuple(survey_of(target, member, ask=ask) for member, target in targets)
    machine_id, boot_id = identity or this_host()
    return HostSurvey(machine=machine, machine_id=machine_id, boot_id=boot_id, taken=rfc3339(now), members=members)


def survey_of(target: ServerTarget, member: str, *, ask: Ask = ask_server) -> MemberSurvey:
    """Of a stopped or running member. Raises UsageError or TargetUnsafe for a wrong directory."""
    place = place_of(target)
    check_swappable(place)
    held, seen = read_contents(place), find_running_servers([place], ask)
    for problem in (*interrupted_restores([place]), *logs_elsewhere(place, held)):
        raise problem
    return MemberSurvey(
        member=member,
        data_dir=str(place.data_dir),
        log_dir=str(place.log_dir),
        host=target.host,
        snapshots=held.snapshots,
        logs=held.logs,
        highest_zxid=max([held.highest_zxid, held.beside_zxid, *(state.zxid for state in seen.live)]),
        epochs=(*held.epochs, *held.beside_epochs),
        fingerprint=held.fingerprint,
        running=seen.running,
        unchecked=seen.unchecked,
        raised_by=held.raised_by,
        directory=directory_id(place.data_folder),
    )


_ONCE: Final = (
    "name the survey of each host once, the newest one; members of two hosts are surveyed under two names, and hosts "
    "that share a name need an /etc/machine-id each"
)


def check_surveys(hosts: Sequence[HostSurvey], now: datetime) -> None:
    """Raises UsageError for surveys that do not belong together, TargetUnsafe for a survey that is too old."""
    for host in hosts:
        check_age(f"the survey of {host.machine}", host.taken, now, "survey it again, with all members stopped")
    surveyed = [(host, member) for host in hosts for member in host.members]
    double = next((pair for pair in combinations(surveyed, 2) if is_one_directory(*pair)), None)
    if double is not None:
        (host, member), (host2, member2) = double
        where, where2 = f"{member.data_dir} on {host.machine}", f"{member2.data_dir} on {host2.machine}"
        what = f"{where} is in two surveys" + ("" if where == where2 else f", once as {where2}")
        raise UsageError(what, remedy=_ONCE)
    renamed = _renamed(hosts)
    if renamed is not None:
        raise UsageError(f"{renamed[1]} on {renamed[0]} is in two surveys", remedy=_ONCE)


def _renamed(hosts: Sequence[HostSurvey]) -> tuple[str, str] | None:
    """A member that was surveyed twice because its host changed its name. Equal files alone may be copies."""
    seen = set[tuple[str, str, str]]()
    for host in hosts:
        for one in host.members:
            key = one.member, one.data_dir, one.fingerprint
            if key in seen and one.fingerprint != NO_FILES_FINGERPRINT:
                return host.machine, one.data_dir
            seen.add(key)
    return None


def check_age(what: str, made: str, now: datetime, remedy: str) -> None:
    """Raises TargetUnsafe if `made` is too long ago or in the future, UsageError if it is not a time."""
    try:
        age = now - datetime.fromisoformat(made)
    except (ValueError, TypeError):
        raise UsageError(f"{what} has no valid time", subject=made[:40], remedy=remedy) from None
    if age < -_CLOCKS_DIFFER:
        raise TargetUnsafe(f"{what} was made in the future ({made})", remedy="check the clocks of the hosts")
    if age > MAX_AGE:
        hours = int(MAX_AGE.total_seconds()) // 3600
        raise TargetUnsafe(f"{what} is of {made}, more than {hours} hours ago", remedy=remedy)


def still_running(hosts: Sequence[HostSurvey]) -> Iterator[LogkeepError]:
    for host in hosts:
        for member in host.members:
            for who in member.running:
                yield TargetUnsafe(
                    f"it was running when it was surveyed: {who}",
                    subject=f"{member.member} on {host.machine}",
                    remedy="stop every member, survey them again and make a new plan",
                )

"""Plan a restore: everything that is known before anything is written, as a dry run shows it. Reads only."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logkeep.directories.group_rights import dropped_group_rights
from logkeep.errors import LogkeepError, OtherOwner, TargetUnsafe, UsageError
from logkeep.model.findings import Finding
from logkeep.model.time import Clock, utc_now
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.restore.ensemble.agreement import (
    archived_zxids,
    check_agrees,
    check_expected,
    known_members,
    needed_epoch,
    without_own_writes,
)
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan
from logkeep.zookeeper.restore.limits import content_of
from logkeep.zookeeper.restore.numbers import highest_used
from logkeep.zookeeper.restore.obstacles import RestoreSituation, findings_of, refusals, unchecked_log_dirs
from logkeep.zookeeper.restore.replayed_tree import check_replayed, name_of, sizes_of
from logkeep.zookeeper.restore.staged_files import (
    DroppedSessions,
    StagedFile,
    drop_sessions,
    exact_files,
    original_files,
)
from logkeep.zookeeper.restore.target.checks import check_owners, check_swappable, check_writable, interrupted_restores
from logkeep.zookeeper.restore.target.directories import ServerDirectories, place_of
from logkeep.zookeeper.restore.target.disk_space import Sizes, check_free_space
from logkeep.zookeeper.restore.target.running_server import Ask, ask_server, find_running_servers
from logkeep.zookeeper.restore.target.state import owner_of, read_contents
from logkeep.zookeeper.restore.values import Form, Sessions, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import ReplayedTree, replay


@dataclass(frozen=True)
class PreparedRestore:
    """A plan, and all that is needed to apply it."""

    planned: ZooKeeperRestorePlan
    places: tuple[ServerDirectories, ...]
    files: tuple[StagedFile, ...]
    path: RestorePath
    replayed: ReplayedTree
    dropped: DroppedSessions
    digests: bool
    ask: Ask


def check_targets(options: ZooKeeperRestoreOptions, *, ask: Ask = ask_server) -> None:
    """Check what does not depend on the backup, before the long read of it. A dry run shows it with the plan instead.

    Raises UsageError, TargetUnsafe.
    """
    places = _places(options)
    for refusal in find_running_servers(places, ask).refusals():
        raise refusal
    check_writable(places)
    check_owners(places)


def _group_rights(places: Iterable[ServerDirectories]) -> Iterator[Finding]:
    for live in (live for place in places for live in place.lives):
        owner = owner_of(live)
        yield from dropped_group_rights(live.above, str(live.path), owner.gid, owner.file_mode | owner.directory_mode)


def prepare(
    view: BackupView,
    path: RestorePath,
    options: ZooKeeperRestoreOptions,
    *,
    agreed: AgreedPlan | None = None,
    replayed: ReplayedTree | None = None,
    clock: Clock = utc_now,
    ask: Ask = ask_server,
) -> PreparedRestore:
    """Raises UsageError or TargetUnsafe for directories that cannot be restored to, Damaged for a broken backup.

    Other refusals are in `planned.obstacles`: a dry run shows them, `carry_out` raises them. `agreed`: the plan that
    was made of the surveys of all hosts. `replayed`: the tree of this path, if the caller has replayed it already;
    its sessions may be removed.
    """
    places = _places(options)
    held = tuple(read_contents(place) for place in places)
    now = clock()
    if agreed is not None:
        check_expected(agreed, zip(places, held, strict=True), now)
    seen = find_running_servers(places, ask)
    replayed = replayed or replay(view, path)
    check_replayed(path, replayed, options)
    dropped = drop_sessions(replayed.tree) if options.sessions is Sessions.DROP else DroppedSessions()
    content = content_of(replayed.tree, int(now.timestamp() * 1000))
    counting = held if agreed is None else without_own_writes(agreed, held)
    least_epoch = needed_epoch(view, options, counting, seen.live)
    epoch = least_epoch if agreed is None else agreed.epoch
    counted = [zxid for each in held for zxid in (each.highest_zxid, each.beside_zxid)]
    used = highest_used(path.until, counted, archived_zxids(view))
    named = name_of(path.until, options.form, used, epoch)
    members = known_members(view.members)
    situation = RestoreSituation(
        options=options,
        path=path,
        content=content,
        mismatch=replayed.first_mismatch,
        missing_acls=replayed.missing_acls,
        targets=tuple(zip(places, held, strict=True)),
        seen=seen,
        epoch=epoch,
        highest_used=used,
        members=members,
        separate_logs=_separate_logs(view),
        surveyed=len(held) if agreed is None else max(members, 2),
    )
    planned = _plan(view.name, named, situation)
    if agreed is not None:
        check_agrees(planned, replayed.tree.digest, agreed, least_epoch or 0)
    if options.form is Form.ORIGINAL:
        files = original_files(view, path, epoch)
    else:
        files = exact_files(replayed.tree, named, epoch, digests=options.digests)
    return PreparedRestore(planned, places, tuple(files), path, replayed, dropped, options.digests, ask)


def _plan(backup: str, named: int, situation: RestoreSituation) -> ZooKeeperRestorePlan:
    path, options = situation.path, situation.options
    places = [place for place, _ in situation.targets]
    sizes = sizes_of(path, situation.content, options.form)
    return ZooKeeperRestorePlan(
        backup=backup,
        zxid=path.until,
        named=named,
        epoch=situation.epoch,
        sessions=options.sessions,
        form=options.form,
        nodes=situation.content.nodes,
        size_bytes=sum(sizes),
        held=tuple(held for _, held in situation.targets),
        findings=(*findings_of(situation), *_group_rights(places)),
        unchecked=(*situation.seen.unchecked, *unchecked_log_dirs(situation.targets)),
        obstacles=(*refusals(situation), *_refused_by_disk(places, sizes)),
    )


def _separate_logs(view: BackupView) -> str:
    separate = (m.log_dir for m in view.members if m.data_dir and m.log_dir and m.log_dir != m.data_dir)
    return next(separate, "")


def _places(options: ZooKeeperRestoreOptions) -> tuple[ServerDirectories, ...]:
    if not options.targets:
        raise UsageError("no directory to restore to is named", remedy="name dataDir of each server")
    if options.form is Form.ORIGINAL and options.sessions is Sessions.DROP:
        raise UsageError("original files keep their sessions", remedy="restore an exact snapshot to drop them")
    places = tuple(place_of(target) for target in options.targets)
    lives = [live.path for place in places for live in place.lives]
    if len(set(lives)) != len(lives):
        raise UsageError("two servers cannot have the same directory", subject=", ".join(map(str, lives)))
    for place in places:
        check_swappable(place)
    return places


def _refused_by_disk(places: Sequence[ServerDirectories], sizes: Sizes) -> Iterator[LogkeepError]:
    yield from interrupted_restores(places)
    try:
        check_writable(places)
        check_owners(places)
        check_free_space(places, sizes)
    except (TargetUnsafe, OtherOwner) as error:
        yield error

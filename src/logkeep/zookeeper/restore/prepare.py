"""Everything about a restore that can be known before anything is written: what a dry run shows. Reads only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Clock, utc_now
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.restore.disk_space import Sizes, check_room
from logkeep.zookeeper.restore.ensemble.agreement import (
    archived_zxids,
    check_agrees,
    check_expected,
    known_members,
    needed_epoch,
    untouched,
)
from logkeep.zookeeper.restore.ensemble.documents import AgreedPlan
from logkeep.zookeeper.restore.limits import Content, content_of
from logkeep.zookeeper.restore.numbers import highest_used, lone_name, member_name
from logkeep.zookeeper.restore.obstacles import RestoreSituation, in_the_way, not_looked_at, worth_knowing
from logkeep.zookeeper.restore.running_server import Ask, ask_server, look_for_servers
from logkeep.zookeeper.restore.sessions import Dropped, drop_sessions
from logkeep.zookeeper.restore.staged_files import Made, exact_files, original_files
from logkeep.zookeeper.restore.target_dirs import ServerDirectories, check_swappable, place_of
from logkeep.zookeeper.restore.target_state import check_writable, held_by, unfinished
from logkeep.zookeeper.restore.values import Form, Sessions, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import ReplayedTree, replay, unproven


@dataclass(frozen=True)
class PreparedRestore:
    """A plan, and all that is needed to carry it out."""

    planned: ZooKeeperRestorePlan
    places: tuple[ServerDirectories, ...]
    files: tuple[Made, ...]
    path: RestorePath
    replayed: ReplayedTree
    dropped: Dropped
    digests: bool
    ask: Ask


def check_targets(wish: ZooKeeperRestoreOptions, *, ask: Ask = ask_server) -> None:
    """What is known without the backup, before hours go into reading it; a dry run shows it with the plan instead.

    Raises UsageError, TargetUnsafe.
    """
    places = _places(wish)
    for refusal in look_for_servers(places, ask).refusals():
        raise refusal
    check_writable(places)


def prepare(
    view: BackupView,
    path: RestorePath,
    wish: ZooKeeperRestoreOptions,
    *,
    agreed: AgreedPlan | None = None,
    replayed: ReplayedTree | None = None,
    clock: Clock = utc_now,
    ask: Ask = ask_server,
) -> PreparedRestore:
    """Raises UsageError or TargetUnsafe for directories that no restore can go to, Damaged for a broken backup.

    What else stands in the way is in `planned.obstacles`: a dry run shows it, `carry_out` raises it. `agreed`: the plan
    that was made of the surveys of all hosts. `replayed`: of this path, if somebody has done it already; its sessions
    may be taken out.
    """
    places = _places(wish)
    held = tuple(held_by(place) for place in places)
    now = clock()
    if agreed is not None:
        check_expected(agreed, zip(places, held, strict=True), now)
    seen = look_for_servers(places, ask)
    replayed = replayed or replay(view, path)
    check_replayed(path, replayed, wish)
    dropped = drop_sessions(replayed.tree) if wish.sessions is Sessions.DROP else Dropped()
    content = content_of(replayed.tree, int(now.timestamp() * 1000))
    least_epoch = needed_epoch(view, wish, held if agreed is None else untouched(agreed, held), seen.live)
    epoch = least_epoch if agreed is None else agreed.epoch
    counted = [zxid for each in held for zxid in (each.highest_zxid, each.beside_zxid)]
    used = highest_used(path.until, counted, archived_zxids(view))
    named = name_of(path.until, wish.form, used, epoch)
    sizes = sizes_of(path, content, wish.form)
    members = known_members(view.members)
    situation = RestoreSituation(
        wish=wish,
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
        looked_at=len(held) if agreed is None else max(members, 2),
    )
    planned = ZooKeeperRestorePlan(
        backup=view.name,
        zxid=path.until,
        named=named,
        epoch=epoch,
        sessions=wish.sessions,
        form=wish.form,
        nodes=content.nodes,
        size_bytes=sum(sizes),
        held=held,
        findings=tuple(worth_knowing(situation)),
        unchecked=(*seen.unchecked, *not_looked_at(situation.targets)),
        obstacles=(*in_the_way(situation), *_refused_by_disk(places, sizes)),
    )
    if agreed is not None:
        check_agrees(planned, replayed.tree.digest, agreed, least_epoch or 0)
    files = _files(view, path, replayed, named, epoch, wish)
    return PreparedRestore(planned, places, tuple(files), path, replayed, dropped, wish.digests, ask)


def _separate_logs(view: BackupView) -> str:
    told = (m.log_dir for m in view.members if m.data_dir and m.log_dir and m.log_dir != m.data_dir)
    return next(told, "")


def _files(
    view: BackupView,
    path: RestorePath,
    replayed: ReplayedTree,
    named: int,
    epoch: int | None,
    wish: ZooKeeperRestoreOptions,
) -> list[Made]:
    if wish.form is Form.ORIGINAL:
        return original_files(view, path, epoch)
    return exact_files(replayed.tree, named, epoch, digests=wish.digests)


def _places(wish: ZooKeeperRestoreOptions) -> tuple[ServerDirectories, ...]:
    if not wish.targets:
        raise UsageError("no directory is named to restore to", remedy="name dataDir of each server")
    if wish.form is Form.ORIGINAL and wish.sessions is Sessions.DROP:
        raise UsageError("original files keep their sessions", remedy="restore an exact snapshot to drop them")
    places = tuple(place_of(target) for target in wish.targets)
    lives = [live.path for place in places for live in place.lives]
    if len(set(lives)) != len(lives):
        raise UsageError("two servers cannot have the same directory", subject=", ".join(map(str, lives)))
    for place in places:
        check_swappable(place)
    return places


def check_replayed(path: RestorePath, replayed: ReplayedTree, wish: ZooKeeperRestoreOptions) -> None:
    """Raises RestoreFailed for a tree that is not the server's, or is not known to be."""
    wrong = replayed.first_mismatch
    if wrong is not None and not wish.accept_mismatch:
        raise RestoreFailed(
            "the replayed tree is not the one that the server had",
            subject=f"zxid {hex_zxid(wrong.zxid)}",
            remedy="verify the backup: a transaction is missing or was changed; restore to an earlier one, or say with "
            "--accept-mismatch why it is to be restored all the same",
        )
    left = unproven(path, replayed)
    if left and not wish.believe:
        ends = ", ".join(hex_zxid(border.before) for border in left)
        raise RestoreFailed(
            f"nothing proves that an epoch ended with {ends}",
            subject=f"zxid {hex_zxid(path.until)}",
            remedy="back up more members, restore to a zxid before it, or say that it is to be believed",
        )


def name_of(zxid: int, form: Form, highest: int, epoch: int | None) -> int:
    """The zxid that servers will say they are at."""
    if form is Form.ORIGINAL:
        return zxid
    return lone_name(zxid, highest) if epoch is None else member_name(epoch)


def sizes_of(path: RestorePath, content: Content, form: Form) -> Sizes:
    base = path.base.snapshot
    if form is Form.EXACT:
        return Sizes(content.size_bytes)
    return Sizes(0 if base is None else base.size_bytes, sum(piece.log.size_bytes for piece in path.slices))


def _refused_by_disk(places: Sequence[ServerDirectories], sizes: Sizes) -> Iterator[LogkeepError]:
    yield from unfinished(places)
    try:
        check_writable(places)
        check_room(places, sizes)
    except TargetUnsafe as error:
        yield error

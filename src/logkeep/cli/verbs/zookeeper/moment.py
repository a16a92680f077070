"""Parse and open the backup, bundle, member and zxid that `history`, `diff` and `log` name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import chosen_source, use_directories
from logkeep.config.option_types import ZxidNumber
from logkeep.config.options import BELIEVE
from logkeep.errors import Damaged, UsageError
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import BackupId
from logkeep.model.time import rfc3339
from logkeep.reports.backups import read_source
from logkeep.repository.backups.holds import reading
from logkeep.repository.chain.owner import this_process
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.history.compare import TreeSide, one_member
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.timeline.plan import ToEnd, ToZxid


def damaged_if(findings: Sequence[Finding]) -> int:
    """The exit code: an answer that lacks unreadable transactions ends with 10."""
    return Damaged.exit_code if any(finding.severity is Severity.DAMAGE for finding in findings) else 0


@contextmanager
def opened_backup(run: Run, named: str) -> Iterator[BackupView]:
    """A backup of the repository by its id, held while it is read; or a bundle by its directory."""
    if is_bundle(named):
        view = BundleView(Path(named).expanduser().absolute())
        view.require_intact()  # report damage before any work
        use_directories(run, Path(named).expanduser())
        yield view
        return
    place = chosen_source(run)
    entry = read_source(place, run.clock()).completed(named)
    with reading(place, BackupId(entry.id), this_process(run.token()), "history", run.token) as held:
        yield view_of(place, held)


def is_bundle(named: str) -> bool:
    """Ids have no slash: a directory in the working directory is written `./name`."""
    return "/" in named


@contextmanager
def opened_side(run: Run, named: str) -> Iterator[TreeSide]:
    """`ID`, `ID:MEMBER`, `ID@ZXID`, `ID:MEMBER@ZXID`, and a directory in place of the id."""
    backup, member, zxid = split_name(named)
    with opened_backup(run, backup) as view:
        of_one: BackupView = one_member(view, member) if member else view
        yield TreeSide(of_one, ToEnd() if zxid is None else ToZxid(zxid), run[BELIEVE])


def split_name(named: str) -> tuple[str, str, int | None]:
    """Backup, member and zxid. Raises UsageError."""
    rest, at, text = named.rpartition("@")
    rest, zxid = (rest, _zxid(text, named)) if at and "/" not in text else (named, None)
    backup, _, member = (rest, "", "") if is_bundle(rest) else rest.partition(":")
    if not backup:
        raise UsageError("no backup is given", subject=named, remedy="write ID, ID@ZXID, ID:MEMBER or a directory")
    return backup, member, zxid


def _zxid(text: str, named: str) -> int:
    try:
        return ZxidNumber().parse(text)
    except ValueError as error:
        raise UsageError(f"there is no zxid after @: {error}", subject=named, remedy="write ID@0x1f") from error


def moment_text(time_ms: int) -> str:
    """RFC 3339, as JSON has it."""
    return rfc3339(datetime.fromtimestamp(time_ms / 1000, UTC))


def session_text(session: int) -> str:
    return hex(session & 0xFFFF_FFFF_FFFF_FFFF)

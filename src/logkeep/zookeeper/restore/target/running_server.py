"""Find servers that use the target directories now: by open files, by processes, and by a request to the server.

A running server that has written nothing yet has no file open. So the configuration of every process that looks like
ZooKeeper is read too. What could not be checked is reported.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ClusterUnreachable, TargetUnsafe
from logkeep.model.plurals import plural
from logkeep.zookeeper.restore.target.directories import LiveDirectory, ServerDirectories, unreadable
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_address, parse_srvr

_PROC = Path("/proc")
_MAINS = ("QuorumPeerMain", "ZooKeeperServerMain")
_ASK_S = 5.0
_LARGEST_CONFIG = 1 << 20

_STOP = "stop the server, of an ensemble every member, and run again"
_IF_ANOTHER = (
    "; if that is not the server of these directories, give the address of the right one with --zk-host HOST:PORT: "
    "no server must answer there"
)

Ask = Callable[[str], ServerState | None]


@dataclass(frozen=True)
class RunningServers:
    """`running`: what uses the directories; `live`: states of servers that answered; `unchecked`: what is not known.

    A server that answers counts as one that uses them: it does not report its directories.
    """

    running: tuple[str, ...] = ()
    live: tuple[ServerState, ...] = ()
    unchecked: tuple[str, ...] = ()
    answering: tuple[str, ...] = ()
    """Those of `running` that are known by their answer alone."""

    def refusals(self) -> Iterator[TargetUnsafe]:
        for who in self.running:
            yield TargetUnsafe(who, remedy=f"{_STOP}{_IF_ANOTHER if who in self.answering else ''}")


def ask_server(host: str) -> ServerState | None:
    """None when no server listens there. A server that runs and does not serve requests counts as one at zxid 0.

    So does one that accepts a connection and hangs. Raises ClusterUnreachable when the network is down.
    """
    try:
        return parse_srvr(four_letter(host, "srvr", _ASK_S)) or ServerState(0)
    except ClusterUnreachable as error:
        if isinstance(error.__cause__, ConnectionRefusedError):
            return None
        if _listens(host):
            return ServerState(0)
        raise


def _listens(host: str) -> bool:
    """Whether a connection is accepted, also when no answer follows."""
    try:
        with socket.create_connection(parse_address(host), timeout=_ASK_S):
            return True
    except OSError:
        return False


def find_running_servers(places: Iterable[ServerDirectories], ask: Ask = ask_server) -> RunningServers:
    found = [_check_processes(list(places)), *(_check_host(place, ask) for place in places)]
    return RunningServers(
        tuple(dict.fromkeys(who for seen in found for who in seen.running)),
        tuple(state for seen in found for state in seen.live),
        tuple(dict.fromkeys(what for seen in found for what in seen.unchecked)),
        tuple(dict.fromkeys(who for seen in found for who in seen.answering)),
    )


def _check_host(place: ServerDirectories, ask: Ask) -> RunningServers:
    if not place.host:
        return RunningServers(unchecked=(f"no host was named for {place.data_dir}, so no server was asked",))
    try:
        state = ask(place.host)
    except ClusterUnreachable as error:
        return RunningServers(unchecked=(f"whether a server runs at {place.host} is not known: {error.what}",))
    if state is None:
        return RunningServers()
    who = f"a server answers at {place.host}" + (f", {place.host_from}" if place.host_from else "")
    return RunningServers((who,), (state,), answering=(who,))


def _check_processes(places: list[ServerDirectories]) -> RunningServers:
    if not (_PROC / "self" / "fd").is_dir():
        return RunningServers(unchecked=("this system does not show which files are open",))
    found = [live for place in places for live in place.lives]
    lives = [live.path for live in found]
    inodes = {inode for live in found for inode in _inodes(live)}
    running, hidden = [], 0
    for process in _processes():
        if _uses(process, {str(live) for live in lives}):
            running.append(f"process {process.name} is a server that is configured for these directories")
        try:
            with os.scandir(process / "fd") as files:
                if any(_is_inside(file, lives, inodes) for file in files):
                    running.append(f"process {process.name} has files open there")
        except PermissionError:
            hidden += 1
        except OSError:  # it has ended
            continue
    unchecked = f"the open files of {plural(hidden, 'process', 'processes')} of other users cannot be seen"
    return RunningServers(tuple(running), (), (unchecked,) if hidden else ())


def _inodes(live: LiveDirectory) -> Iterator[tuple[int, int]]:
    """Of the files there. Raises TargetUnsafe where they may not be read: then their users cannot be found."""
    try:
        entries = live.folder.entries() if live.folder is not None else []
    except OSError as error:
        raise unreadable(live.path, error) from error
    for entry in entries:
        yield entry.status.st_dev, entry.status.st_ino


def _processes() -> Iterator[Path]:
    own = str(os.getpid())
    return (each for each in _PROC.iterdir() if each.name.isdecimal() and each.name != own)


def _is_inside(file: os.DirEntry[str], lives: list[Path], inodes: set[tuple[int, int]]) -> bool:
    """By inode, because a container has another path for the same file; a deleted file by its path."""
    try:
        status = file.stat()
        if (status.st_dev, status.st_ino) in inodes:
            return True
        link = Path(file.path).readlink() if stat.S_ISREG(status.st_mode) and not status.st_nlink else None
    except OSError:  # closed meanwhile
        return False
    return link is not None and any(live in link.parents for live in lives)


def _uses(process: Path, lives: set[str]) -> bool:
    """Whether it is a server whose configuration names one of the directories."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
        started = next((n for n, word in enumerate(words) if word.endswith(_MAINS)), None)
        if started is None:
            return False
        named = _configured(words[started + 1 :], (process / "cwd").readlink())
        return any(str((path / "version-2").resolve()) in lives for path in named)
    except (OSError, ValueError):
        return False


def _configured(arguments: list[str], cwd: Path) -> list[Path]:
    """The arguments are a configuration file; or, of a standalone server, a port and a directory."""
    if len(arguments) > 1 and arguments[0].isdecimal():
        return [cwd / arguments[1]]
    if not arguments or not arguments[0]:
        return []
    with (cwd / arguments[0]).open("rb") as file:
        lines = file.read(_LARGEST_CONFIG).decode(errors="surrogateescape").splitlines()
    pairs = [line.partition("=") for line in lines if not line.lstrip().startswith("#")]
    return [cwd / value.strip() for key, _, value in pairs if key.strip() in ("dataDir", "dataLogDir")]

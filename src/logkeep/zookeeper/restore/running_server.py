"""Whether a server uses these directories now: asked of the system, of the server, and of the files themselves.

A server that runs and has written nothing yet holds no file open; so processes that look like ZooKeeper are asked for
their configuration too. What could not be found out is told, never passed over.
"""

import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import ClusterUnreachable, TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import ServerDirectories, unreadable
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_address, parse_srvr

_PROC = Path("/proc")
_MAINS = ("QuorumPeerMain", "ZooKeeperServerMain")
_ASK_S = 5.0
_LARGEST_CONFIG = 1 << 20

_STOP = "stop the server, of an ensemble every member, and run again"
_IF_ANOTHER = (
    "; if that is not the server of these directories, name the address of the one that is with --zk-host HOST:PORT: "
    "nobody must answer there"
)

Ask = Callable[[str], ServerState | None]


@dataclass(frozen=True)
class RunningServers:
    """`running`: who uses the directories; `live`: states of servers that answered; `unchecked`: what is not known.

    A server that answers counts as one that uses them, whatever it serves: that can be asked of nobody who knows.
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
    """None when nobody is there. One that runs and serves nobody at the moment counts as a server at zxid 0.

    So does one that takes a connection and hangs. Raises ClusterUnreachable when nobody can tell: the network is down.
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
    """Somebody who takes a connection and says nothing is there all the same."""
    try:
        with socket.create_connection(parse_address(host), timeout=_ASK_S):
            return True
    except OSError:
        return False


def look_for_servers(places: Iterable[ServerDirectories], ask: Ask = ask_server) -> RunningServers:
    found = [_of_processes(list(places)), *(_of_host(place, ask) for place in places)]
    return RunningServers(
        tuple(dict.fromkeys(who for seen in found for who in seen.running)),
        tuple(state for seen in found for state in seen.live),
        tuple(dict.fromkeys(what for seen in found for what in seen.unchecked)),
        tuple(dict.fromkeys(who for seen in found for who in seen.answering)),
    )


def _of_host(place: ServerDirectories, ask: Ask) -> RunningServers:
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


def _of_processes(places: list[ServerDirectories]) -> RunningServers:
    if not (_PROC / "self" / "fd").is_dir():
        return RunningServers(unchecked=("this system does not tell which files are open",))
    lives = [live.path for place in places for live in place.lives]
    inodes = {inode for live in lives for inode in _inodes(live)}
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
    unchecked = f"the open files of {hidden} processes of other users cannot be seen"
    return RunningServers(tuple(running), (), (unchecked,) if hidden else ())


def _inodes(live: Path) -> Iterator[tuple[int, int]]:
    """Of the files there. Raises TargetUnsafe where they may not be seen: then nobody knows who uses them."""
    try:
        entries = list(live.iterdir()) if live.is_dir() else []
    except OSError as error:
        raise unreadable(live, error) from error
    for entry in entries:
        try:
            told = entry.lstat()
        except FileNotFoundError:  # gone meanwhile, and used by nobody any more
            continue
        yield told.st_dev, told.st_ino


def _processes() -> Iterator[Path]:
    own = str(os.getpid())
    return (each for each in _PROC.iterdir() if each.name.isdecimal() and each.name != own)


def _is_inside(file: os.DirEntry[str], lives: list[Path], inodes: set[tuple[int, int]]) -> bool:
    """By identity, for a container knows the same file under another name; or by the name of one that was deleted."""
    try:
        told = file.stat()
        if (told.st_dev, told.st_ino) in inodes:
            return True
        link = Path(file.path).readlink() if stat.S_ISREG(told.st_mode) and not told.st_nlink else None
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
    """A configuration file; or, of a server that stands alone, a port and a directory."""
    if len(arguments) > 1 and arguments[0].isdecimal():
        return [cwd / arguments[1]]
    if not arguments or not arguments[0]:
        return []
    with (cwd / arguments[0]).open("rb") as file:
        lines = file.read(_LARGEST_CONFIG).decode(errors="surrogateescape").splitlines()
    pairs = [line.partition("=") for line in lines if not line.lstrip().startswith("#")]
    return [cwd / value.strip() for key, _, value in pairs if key.strip() in ("dataDir", "dataLogDir")]

"""A shop's settings for the demo: a real ZooKeeper, written, read and emptied with nothing but Apache's own shell."""

from collections.abc import Sequence

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import LogkeepError

_SHELL = "org.apache.zookeeper.ZooKeeperMain"


class ZkCliUser:
    """What a user of `zkCli.sh` would do. Each call is a session of its own."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self._server = server

    def type(self, *lines: str) -> str:
        """Lines typed into one shell; all that it printed."""
        return self._server.java_tool(_SHELL, ["-server", self._server.client], "".join(f"{line}\n" for line in lines))

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        """The data of nodes, and who may do what with them: `42 'world,'anyone : cdrwa`."""
        answers = self.type(*(f"{verb} {path}" for path in paths for verb in ("get", "getAcl"))).splitlines()
        told = [line for line in answers if line and not line.startswith(_CHATTER)]
        each = 1 + _ACL_LINES
        if len(told) != each * len(paths):
            raise LogkeepError("the shell's answers are not what was asked for", subject=", ".join(paths))
        return {path: " ".join(told[each * n : each * (n + 1)]) for n, path in enumerate(paths)}


_CHATTER = ("Connecting to", "Welcome to", "JLine support", "WATCHER::", "WatchedEvent")
_ACL_LINES = 2
"""`'world,'anyone` and `: cdrwa`."""

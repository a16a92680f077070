"""The ZooKeeper chapter of the demo: settings are backed up, deleted by accident, traced, and restored.

A real server, written and read with Apache's own shell only.
"""

import re
from collections.abc import Sequence

from logkeep.cli.demo.stage import Stage
from logkeep.cli.terminal.text import count
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import LogkeepError

_SOURCE = ("--source", "settings")
_TOP = "/shop/settings"
_SETTINGS = {f"{_TOP}/{name}": value for name, value in {"currency": "EUR", "opens": "8", "price": "40"}.items()}
_CLOSED, _PRICE = f"{_TOP}/currency", f"{_TOP}/price"
_TILLS = 40
_DELETED = re.compile(r"^ *0x(?P<zxid>[0-9a-f]+) .* delete ", re.M)
_SHELL = "org.apache.zookeeper.ZooKeeperMain"
_CHATTER = ("Connecting to", "Welcome to", "JLine support", "WATCHER::", "WatchedEvent")
_ACL_LINES = 2
"""Lines of one ACL: `'world,'anyone` and `: cdrwa`."""


class ZkCliUser:
    """A user of `zkCli.sh`. Each call is a session of its own."""

    def __init__(self, server: EmbeddedZooKeeper) -> None:
        self._server = server

    def type(self, *lines: str) -> str:
        """Type lines into one shell; returns what it printed."""
        return self._server.java_tool(_SHELL, ["-server", self._server.client], "".join(f"{line}\n" for line in lines))

    def read(self, paths: Sequence[str]) -> dict[str, str]:
        """The data and the ACL of each node: `42 'world,'anyone : cdrwa`."""
        answers = self.type(*(f"{verb} {path}" for path in paths for verb in ("get", "getAcl"))).splitlines()
        printed = [line for line in answers if line and not line.startswith(_CHATTER)]
        each = 1 + _ACL_LINES
        if len(printed) != each * len(paths):
            raise LogkeepError("the shell printed something unexpected", subject=", ".join(paths))
        return {path: " ".join(printed[each * n : each * (n + 1)]) for n, path in enumerate(paths)}


def zookeeper_chapter(stage: Stage) -> None:
    """A real server, from its first node to a drill of a full restore."""
    server, settings = open_settings(stage)
    with stage.step("back up the running server"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
    with stage.step("the accident: a user changes a price, then deletes all settings"):
        lost = _lose(settings, stage)
    with stage.step("back up again, and find out who deleted them"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
        history = stage.logkeep("zookeeper", "history", _TOP, "--recursive", "--limit", "5", *_SOURCE, "-q")
    with stage.step("restore the settings as they were just before that, into the running server"):
        _restore(stage, _before_the_first_delete(history))
        _compare(settings, stage, lost)
    with stage.step("drill: restore everything to a separate server, and compare"):
        stage.logkeep("drill", "latest", *_SOURCE, "-q")
        stage.logkeep("receipts", "list", *_SOURCE)
    with stage.step("stop the server"):
        server.stop()


def open_settings(stage: Stage) -> tuple[EmbeddedZooKeeper, ZkCliUser]:
    """Start a server and fill it; returns it and its user."""
    server = EmbeddedZooKeeper(stage.directory / "zookeeper", stage.cache)
    settings = ZkCliUser(server)
    with stage.step(f"start a real ZooKeeper {server.release.version} server"):
        stage.resources.callback(server.stop)  # before the start: Ctrl-C may come while it starts
        server.start()
        stage.export("LOGKEEP_ZOOKEEPER_DATA_DIR", str(server.data_dir))
        stage.export("LOGKEEP_ZOOKEEPER_HOST", server.client)
    with stage.step("keep the shop's settings in it, with Apache's own shell"):
        _open(settings, stage)
    return server, settings


def _open(settings: ZkCliUser, stage: Stage) -> None:
    """One setting is read-only: ACLs are lost and restored too."""
    made = [f"create {path} {value}" for path, value in _SETTINGS.items()]
    tills = [f"create /shop/tills/{number} open" for number in range(_TILLS)]
    closed = f"setAcl {_CLOSED} world:anyone:r"
    settings.type("create /shop", f"create {_TOP}", *made, closed, "create /shop/tills", *tills)
    stage.say(f"   {_TOP}: {len(_SETTINGS)} settings, one of them read-only; /shop/tills: {count(_TILLS)} tills")


def _lose(settings: ZkCliUser, stage: Stage) -> dict[str, str]:
    """Delete the settings; returns what Apache's shell would have shown right before."""
    settings.type(f"set {_PRICE} 42", f"deleteall {_TOP}")
    stage.say(f"   gone: {_TOP} and everything below it, with a price that no backup has yet")
    now = _SETTINGS | {_PRICE: "42"}
    return {path: f"{value} 'world,'anyone : {'r' if path == _CLOSED else 'cdrwa'}" for path, value in now.items()}


def _before_the_first_delete(history: str) -> str:
    """The last zxid before the deletion began. Children are deleted first."""
    deleted = [int(found["zxid"], 16) for found in _DELETED.finditer(history)]
    if not deleted:
        raise LogkeepError("the history does not show who deleted it", subject=f"logkeep zookeeper history {_TOP}")
    return f"0x{min(deleted) - 1:x}"


def _restore(stage: Stage, zxid: str) -> None:
    journal = str(stage.directory / "settings.journal")
    wanted = ("--to-zxid", zxid, "--journal", journal, "--yes", "-q")
    stage.logkeep("zookeeper", "restore-subtree", "latest", _TOP, *_SOURCE, *wanted)


def _compare(settings: ZkCliUser, stage: Stage, lost: dict[str, str]) -> None:
    """Compare with Apache's own shell, not with what restored it."""
    found = settings.read(list(lost))
    differing = [path for path in lost if found[path] != lost[path]]
    if differing:
        raise LogkeepError("the restored settings differ from the lost ones", subject=", ".join(differing))
    stage.say(f"   Apache's shell reads {len(found)} settings, each with its data and its ACL as before")

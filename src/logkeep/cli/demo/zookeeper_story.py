"""The chapter of ZooKeeper: settings, their backup, somebody who deletes them, who it was, and the way back."""

import re

from logkeep.cli.demo.settings import ZkCliUser
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


def tell_of_zookeeper(stage: Stage) -> None:
    """A real server, from its first node to a rehearsal of the day when all of it is lost."""
    server = EmbeddedZooKeeper(stage.directory / "zookeeper", stage.cache)
    settings = ZkCliUser(server)
    with stage.step(f"start a real ZooKeeper {server.release.version} server"):
        stage.resources.callback(server.stop)  # before the start: Ctrl-C may come while it starts
        server.start()
        stage.export("LOGKEEP_ZOOKEEPER_DATA_DIR", str(server.data_dir))
        stage.export("LOGKEEP_ZOOKEEPER_HOST", server.client)
    with stage.step("keep the shop's settings in it, with Apache's own shell"):
        _open(settings, stage)
    with stage.step("back the server up while it runs"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
    with stage.step("the accident: somebody changes a price, and then deletes all settings"):
        lost = _lose(settings, stage)
    with stage.step("ask who it was, of a backup of what is new"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
        told = stage.logkeep("zookeeper", "history", _TOP, "--recursive", "--limit", "5", *_SOURCE, "-q")
    with stage.step("put the settings back as they were just before that, into the server as it runs"):
        _put_back(stage, _before_the_first_delete(told))
        _compare(settings, stage, lost)
    with stage.step("rehearse the worst day: all of it restored, served by a server of its own, and compared"):
        stage.logkeep("drill", "latest", *_SOURCE, "-q")
        stage.logkeep("receipts", "list", *_SOURCE)
    with stage.step("stop the server"):
        server.stop()


def _open(settings: ZkCliUser, stage: Stage) -> None:
    """One setting that nobody may write: ACLs are part of what is lost and found."""
    made = [f"create {path} {value}" for path, value in _SETTINGS.items()]
    tills = [f"create /shop/tills/{number} open" for number in range(_TILLS)]
    closed = f"setAcl {_CLOSED} world:anyone:r"
    settings.type("create /shop", f"create {_TOP}", *made, closed, "create /shop/tills", *tills)
    stage.say(
        f"   {_TOP}: {len(_SETTINGS)} settings, one of which may only be read; /shop/tills: {count(_TILLS)} tills"
    )


def _lose(settings: ZkCliUser, stage: Stage) -> dict[str, str]:
    """What there was right before, as Apache's shell would have shown it."""
    settings.type(f"set {_PRICE} 42", f"deleteall {_TOP}")
    stage.say(f"   gone: {_TOP} and all below it, with a price that no backup has seen")
    now = _SETTINGS | {_PRICE: "42"}
    return {path: f"{value} 'world,'anyone : {'r' if path == _CLOSED else 'cdrwa'}" for path, value in now.items()}


def _before_the_first_delete(told: str) -> str:
    """Children go first: the moment before is the one before the first of them."""
    deleted = [int(found["zxid"], 16) for found in _DELETED.finditer(told)]
    if not deleted:
        raise LogkeepError("the history does not tell who deleted it", subject=f"logkeep zookeeper history {_TOP}")
    return f"0x{min(deleted) - 1:x}"


def _put_back(stage: Stage, zxid: str) -> None:
    journal = str(stage.directory / "settings.journal")
    wanted = ("--to-zxid", zxid, "--journal", journal, "--yes", "-q")
    stage.logkeep("zookeeper", "restore-subtree", "latest", _TOP, *_SOURCE, *wanted)


def _compare(settings: ZkCliUser, stage: Stage, lost: dict[str, str]) -> None:
    """By Apache's own shell, not by what restored it."""
    found = settings.read(list(lost))
    differing = [path for path in lost if found[path] != lost[path]]
    if differing:
        raise LogkeepError("it is not what was lost", subject=", ".join(differing))
    stage.say(f"   Apache's shell reads {len(found)} settings, each with its data and its ACL as before")

"""The chapter of ZooKeeper: settings, their backup, somebody who deletes them, who it was, and the way back."""

import re

from logkeep.cli.demo.settings import Settings
from logkeep.cli.demo.stage import Stage
from logkeep.cli.look import count
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import LogkeepError

_SOURCE = ("--source", "settings")
_TOP = "/shop/settings"
_NAMES = ("currency", "opens", "price", "tax")
_PATHS = tuple(f"{_TOP}/{name}" for name in _NAMES)
_TILLS = 40
_DELETED = re.compile(r"^ *0x(?P<zxid>[0-9a-f]+) .* delete ", re.M)


def tell_of_zookeeper(stage: Stage) -> None:
    """A real server, from its first node to a rehearsal of the day when all of it is lost."""
    server = EmbeddedZooKeeper(stage.directory / "zookeeper", stage.cache)
    settings = Settings(server)
    with stage.step(f"start a real ZooKeeper {server.release.version} server"):
        stage.resources.callback(server.stop)  # before the start: Ctrl-C may come while it starts
        server.start()
        stage.export("LOGKEEP_ZOOKEEPER_DATA_DIR", str(server.data_dir))
        stage.export("LOGKEEP_ZOOKEEPER_HOST", server.client)
    with stage.step("keep the shop's settings in it, with Apache's own shell"):
        _open(settings, stage)
    with stage.step("back the server up while it runs"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
    with stage.step("a price is changed, and then somebody deletes all settings"):
        before = _lose(settings, stage)
    with stage.step("ask who it was, of a backup of what is new"):
        stage.logkeep("zookeeper", "backup", *_SOURCE, "-q")
        told = stage.logkeep("zookeeper", "history", _TOP, "--recursive", "--limit", "6", *_SOURCE)
    with stage.step("put the settings back as they were just before that, into the server as it runs"):
        _put_back(stage, _before_the_first_delete(told))
        _compare(settings, stage, before)
    with stage.step("rehearse the worst day: all of it restored, served by a server of its own, and compared"):
        stage.logkeep("drill", "latest", *_SOURCE, "-q")
        stage.logkeep("receipts", "list", *_SOURCE)
    with stage.step("stop the server"):
        server.stop()


def _open(settings: Settings, stage: Stage) -> None:
    """One setting that nobody may write: ACLs are part of what is lost and found."""
    made = [f"create {path} {number}" for number, path in enumerate(_PATHS)]
    tills = [f"create /shop/tills/{number} open" for number in range(_TILLS)]
    closed = f"setAcl {_PATHS[0]} world:anyone:r"
    settings.type("create /shop", f"create {_TOP}", *made, closed, "create /shop/tills", *tills)
    stage.say(f"   {_TOP}: {len(_NAMES)} settings, {_NAMES[0]} may only be read; /shop/tills: {count(_TILLS)} tills")


def _lose(settings: Settings, stage: Stage) -> dict[str, str]:
    """What there was right before; whoever deletes it comes with a session of their own."""
    before = settings.read(_PATHS, f"set {_TOP}/price 42")
    settings.type(f"deleteall {_TOP}")
    stage.say(f"   gone: {_TOP} and all below it, with a price that no backup has seen")
    return before


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


def _compare(settings: Settings, stage: Stage, before: dict[str, str]) -> None:
    """By Apache's own shell, not by what restored it."""
    after = settings.read(_PATHS)
    differing = [path for path in _PATHS if before[path] != after[path]]
    if differing:
        raise LogkeepError("it is not what it was before", subject=", ".join(differing))
    stage.say(f"   Apache's shell reads {len(after)} settings, each with its data and its ACL as before")

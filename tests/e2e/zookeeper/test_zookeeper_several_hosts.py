"""Members of an ensemble that are restored one by one, as on hosts of their own: survey, plan, restore."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.zookeeper import ZooKeeperRelease
from tests.support.cli.in_process import Here
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble, ZooKeeperMember
from tests.support.zookeeper.handmade_server import old_server
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-several-hosts")


@dataclass(frozen=True)
class Hosts:
    """Directories of stopped members, and the repository that all of them see."""

    here: Here
    root: Path
    places: dict[str, tuple[str, ...]]
    """Flags that name the directories, by member."""

    def survey(self, name: str, code: int = 0) -> Path:
        file = self.root / f"{name}.survey.json"
        told = self.here.json("zookeeper", "restore", "survey", *self.places[name], "--to", str(file), code=code)
        assert told["file"] == str(file)
        return file

    def plan(self, surveys: list[Path], *more: str, code: int = 0) -> dict[str, Any]:
        asked = ("zookeeper", "restore", "plan", "latest", *map(str, surveys), "--to", str(self.file), *more)
        return self.here.json(*asked, code=code)

    @property
    def file(self) -> Path:
        return self.root / "plan.json"

    def refused(self, name: str, *more: str, code: int) -> dict[str, Any]:
        asked = ("zookeeper", "restore", "--plan", str(self.file), *self.places[name], "--yes", *more)
        return self.here.error(*asked, code=code)


def _flags(member: ZooKeeperMember) -> tuple[str, ...]:
    places = (("--data-dir", member.data_dir), ("--log-dir", member.log_dir), ("--zk-host", member.client))
    return tuple(word for flag, value in places for word in (flag, f"zk{member.number}={value}"))


def test_a_forgotten_member_gets_the_restored_tree(initialised: Path, tmp_path: Path) -> None:
    """Three of four are restored by the plan. The fourth has data of a later epoch, and is started first."""
    shutil.copytree(initialised, tmp_path / "repo")
    here, ensemble = Here(tmp_path), ZooKeeperEnsemble(tmp_path / "members", CACHE, ZooKeeperRelease("3.9.5"))
    forgotten = ensemble.voters[2]
    for member in ensemble.members.values():
        old_server(member.data_dir, member.log_dir, epoch=9 if member is forgotten else 3, epochs=True)
    hosts = Hosts(here, tmp_path, {str(n): _flags(member) for n, member in ensemble.members.items()})
    here.json("zookeeper", "backup", *hosts.places["1"], *hosts.places["2"], code=2)
    told = hosts.plan([hosts.survey(name) for name in "1234"], "--sessions", "drop")
    assert told["tree"]["epoch"] == 10
    for name in "124":
        dry = here.json("zookeeper", "restore", "--plan", str(hosts.file), *hosts.places[name], "--dry-run")
        assert (dry["tree"]["epoch"], dry["refusals"]) == (10, [])
        here.json("zookeeper", "restore", "--plan", str(hosts.file), *hosts.places[name], "--yes")
    assert "applied here before" in hosts.refused("1", code=31)["message"]
    forgotten.launch()
    with ensemble:
        for member in ensemble.members.values():
            found = record(member.client, member.password).nodes
            assert {node.czxid >> 32 for path, node in found.items() if path.startswith("/old")} == {3}
        running = [hosts.survey(name, code=2) for name in "1234"]
    assert "it was running when it was surveyed" in str(hosts.plan(running, code=31)["refusals"])


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("initialised")
    (root / "repo").mkdir()
    Here(root).run("init")
    return root / "repo"


@pytest.fixture
def made(initialised: Path, tmp_path: Path) -> Hosts:
    """Without servers: members of made-up directories, and a backup of the first two."""
    shutil.copytree(initialised, tmp_path / "repo")
    here, places = Here(tmp_path), dict[str, tuple[str, ...]]()
    for name, epoch in (("zk1", 3), ("zk2", 3), ("zk3", 5)):
        old_server(tmp_path / name, epoch=epoch, epochs=True)
        places[name] = ("--data-dir", f"{name}={tmp_path / name}")
    here.json("zookeeper", "backup", *places["zk1"], *places["zk2"], code=2)
    return Hosts(here, tmp_path, places)


def test_the_plan_is_shown_for_all_and_every_host_carries_it_out(made: Hosts) -> None:
    surveys = [made.survey(name) for name in made.places]
    asked = ("zookeeper", "restore", "plan", "latest", *map(str, surveys))
    shown = made.here.run(*asked).stdout
    table = [line.split() for line in shown.splitlines() if line.startswith("zk")]
    assert [(row[0], row[-2], row[-1]) for row in table] == [("zk1", "3", "6"), ("zk2", "3", "6"), ("zk3", "5", "6")]
    assert "nothing is written: --to plan.json writes the plan" in shown
    assert not made.file.exists()
    written = made.here.run(*asked, "--to", str(made.file)).stdout
    assert "logkeep zookeeper restore --plan plan.json --data-dir DIR" in written
    for flags in made.places.values():
        done = made.here.json("zookeeper", "restore", "--plan", str(made.file), *flags, "--yes")
        assert done["tree"]["epoch"] == 6
    assert {(made.root / name / "version-2" / "currentEpoch").read_text() for name in made.places} == {"6"}
    receipts = made.here.json("receipts", "list")["restores"]
    assert len(receipts) == 3


def test_too_few_surveys_are_no_plan(made: Hosts) -> None:
    told = made.plan([made.survey("zk1")], code=31)
    assert "only 1 of the ensemble's members" in str(told["refusals"])
    assert made.plan([made.survey("zk1")], "--min-epoch", "9")["tree"]["epoch"] == 10


def test_what_a_plan_is_refused_for(made: Hosts) -> None:
    made.plan([made.survey(name) for name in made.places])
    assert made.refused("zk1", "--sessions", "drop", code=40)["remedy"] == "leave --sessions out, or make another plan"
    assert made.refused("zk1", "--to-zxid", "0x1", "--min-epoch", "3", code=40)["error"] == "usage-error"
    assert made.refused("zk1", "--source", "other", code=40)["message"] == "the plan is for source zookeeper"
    assert "leave --plan out" in str(made.refused("zk1", "--rollback", code=40)["remedy"])
    (made.root / "zk1" / "version-2" / "log.300000099").write_bytes(b"")
    assert "survey every host again" in str(made.refused("zk1", code=31)["remedy"])
    old_server(made.root / "zk9", epoch=3, epochs=True)
    other = Hosts(made.here, made.root, {"zk9": ("--data-dir", str(made.root / "zk9"))})
    assert "not made for this directory" in str(other.refused("zk9", code=40)["message"])
    made.file.write_text("{}")
    assert made.refused("zk2", code=10)["remedy"] == "`logkeep zookeeper restore plan` writes one"
    made.file.unlink()
    assert made.refused("zk2", code=40)["error"] == "usage-error"


def test_what_a_survey_is_refused_for(made: Hosts) -> None:
    asked = ("zookeeper", "restore", "survey", *made.places["zk1"], "--to")
    other = made.root / "precious.txt"
    other.write_text("precious")
    assert "something else" in made.here.error(*asked, str(other), code=40)["message"]
    assert other.read_text() == "precious"
    assert made.here.error(*asked, str(made.root / "no" / "x.json"), code=40)["error"] == "usage-error"
    assert made.here.error("zookeeper", "restore", "survey", "--data-dir", "/nowhere", code=40)["remedy"]
    assert made.here.error("zookeeper", "restore", "plan", "latest", str(other), code=10)["error"] == "damaged"
    assert made.here.error("zookeeper", "restore", "plan", "latest", "/nowhere.json", code=40)["remedy"]
    twice = [str(made.survey("zk1")), str(made.survey("zk1"))]
    assert "two surveys" in made.here.error("zookeeper", "restore", "plan", "latest", *twice, code=40)["message"]

"""Giving a restore up, keeping its documents elsewhere, and what cannot be resumed."""

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.repository.restores import list_restores
from tests.e2e.test_bad_input import READ_ONLY, in_namespace
from tests.integration.kafka.restore.scene import Scene, positions, read, troubles, write
from tests.support.cli.filled_repository import document_of
from tests.support.kafka.client_view_of_configs import delete_topic, own_configs, topic_names
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")


@pytest.fixture
def backed(scene: Scene) -> Scene:
    """One small topic."""
    name = f"small-{scene.repo.home.parent.name}"[:60]
    if name not in topic_names(scene.kafka):
        scene.topics.create(name, 1)
        write(scene.topics, name, [f"{i}" for i in range(20)])
    scene.back_up(name)
    return scene


def _interrupted(scene: Scene, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    """A restore that was stopped when its records were there and nothing else was done."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("logkeep.kafka.restore.run.finish", stopped)
        said = scene.commands.say(*scene.restore_words(*more, "--yes"))
    assert said.code == 130, said.err
    return str(list_restores(scene.repo.place())[-1].id)


def _abort(scene: Scene, restore_id: str, *more: str) -> tuple[str, ...]:
    return "kafka", "restore", "abort", restore_id, "--bootstrap-servers", scene.target.bootstrap, *more


def test_topics_that_it_made_go_and_others_stay(backed: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = backed
    restore_id = _interrupted(scene, monkeypatch, "--rename", "s/.*/given-up/")
    assert "given-up" in topic_names(scene.target)
    foreseen = scene.commands.json(*_abort(scene, restore_id, "--dry-run"))
    assert (foreseen["deleted"], "given-up" in topic_names(scene.target)) == (["given-up"], True)
    done = scene.commands.json(*_abort(scene, restore_id, "--yes"))
    assert (done["deleted"], done["kept"], done["findings"]) == (["given-up"], [], [])
    wait_for(lambda: "given-up" not in topic_names(scene.target), "the broker to hear of it")
    assert "was aborted" in scene.refused("--resume", restore_id, code=40)
    # Somebody makes a topic of that name; giving up once more leaves it alone.
    Matrix(scene.target).create("given-up")
    again = scene.commands.json(*_abort(scene, restore_id, "--yes"))
    assert again["deleted"] == []
    assert "given-up" in topic_names(scene.target)
    (row,) = scene.commands.json("receipts", "list")["restores"]
    assert row["state"] == "aborted"


def test_topics_that_were_there_get_their_configs_back(backed: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, there = backed, Matrix(backed.target)
    name = there.create(
        f"there-{scene.repo.home.parent.name}"[:60], 1, {"retention.ms": "98765432", "segment.bytes": "2000000"}
    )
    before = own_configs(scene.target, name)
    write(there, name, ["theirs"])
    restore_id = _interrupted(scene, monkeypatch, "--rename", f"s/.*/{name}/", "--into-existing")
    assert own_configs(scene.target, name)["retention.ms"] == "-1"
    done = scene.commands.json(*_abort(scene, restore_id, "--yes"))
    assert (done["deleted"], done["kept"]) == ([], [name])
    assert own_configs(scene.target, name) == before
    assert read(scene.target, name)[0] == "theirs"


def test_a_topic_that_was_made_again_is_not_ours(backed: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = backed
    restore_id = _interrupted(scene, monkeypatch, "--rename", "s/.*/remade/")
    delete_topic(scene.target, "remade")
    Matrix(scene.target).create("remade")
    write(Matrix(scene.target), "remade", ["somebody else's"])
    shown = scene.restore("--resume", restore_id, code=30)
    assert [(f["code"], f["where"]) for f in troubles(shown)] == [("topic-gone", "remade")]
    scene.commands.json(*_abort(scene, restore_id, "--yes"))
    assert read(scene.target, "remade") == ["somebody else's"]
    assert own_configs(scene.target, "remade") == {}


def test_one_that_ended_well_is_not_given_up(backed: Scene) -> None:
    scene = backed
    done = scene.restore("--rename", "s/.*/ended-well/")
    before = scene.state()
    assert "may be in use" in scene.commands.error(*_abort(scene, str(done["restore"]), "--yes"), code=31)
    assert scene.state() == before


def test_another_cluster_is_not_resumed_into(
    backed: Scene, monkeypatch: pytest.MonkeyPatch, kafka: EmbeddedKafka
) -> None:
    scene = backed
    restore_id = _interrupted(scene, monkeypatch, "--rename", "s/.*/elsewhere/")
    before = scene.state(), sorted(topic_names(kafka)), positions(kafka)
    for words in (("--resume", restore_id), ("abort", restore_id)):
        wrong = ("kafka", "restore", *words, "--bootstrap-servers", kafka.bootstrap, "--yes")
        assert "name the brokers of that cluster" in scene.commands.error(*wrong, code=40)
    assert "no restore has the id 7" in scene.commands.error(*scene.restore_words("--resume", "7", "--yes"), code=40)
    assert "--topics" in scene.commands.error(
        *scene.restore_words("--resume", restore_id, "--topics", "x", "--yes"), code=40
    )
    changed = {name for name in scene.repo.tree() if name not in before[0][0] and not name.startswith("holds")}  # type: ignore[operator]
    assert all("events" in name or "resumed" in name for name in changed), changed
    assert (sorted(topic_names(kafka)), positions(kafka)) == before[1:]
    scene.restore("--resume", restore_id)
    assert read(scene.target, "elsewhere") == [f"{i}" for i in range(20)]


def test_a_repository_that_may_only_be_read(backed: Scene) -> None:
    """Plans and receipts go to a directory, and a restore goes on from there."""
    scene = backed
    before = scene.repo.tree()
    words = scene.restore_words("--rename", "s/.*/from-read-only/", "--yes", "--json")
    denied = in_namespace(scene.repo, READ_ONLY, *words)
    assert denied.returncode == 52, denied.stderr
    assert "--state-dir" in denied.stderr
    assert "from-read-only" not in topic_names(scene.target)
    state = scene.repo.home / "state"
    done = in_namespace(scene.repo, READ_ONLY, *words, "--state-dir", str(state))
    assert done.returncode == 0, done.stderr
    first = document_of(done.stdout)
    resumed = ("--resume", str(first["restore"]), "--yes", "--json", "--state-dir", str(state))
    again = in_namespace(scene.repo, READ_ONLY, *scene.restore_words(*resumed))
    assert again.returncode == 0, again.stderr
    assert document_of(again.stdout)["verdict"] == "proven"
    assert read(scene.target, "from-read-only") == [f"{i}" for i in range(20)]
    assert scene.repo.tree() == before
    (row,) = scene.commands.json("receipts", "list", "--state-dir", str(state))["restores"]
    assert row["state"] == "proven"

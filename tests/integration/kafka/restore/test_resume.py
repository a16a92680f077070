"""Drivers die anywhere, and `--resume` goes on: exact, with groups, configs and receipts as if nothing had been."""

import json

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.crash.seeds import seeded
from tests.integration.kafka.restore.drivers import Drivers, Point
from tests.integration.kafka.restore.killing import GROUP, SOURCES, Killing, write_sources
from tests.integration.kafka.restore.scene import Scene, bounds, group_positions, set_config, write
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_readers import read_whole
from tests.support.kafka.client_view_of_configs import own_configs
from tests.support.kafka.group_topic import commit
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place

pytestmark = pytest.mark.xdist_group("kafka-restore")


@pytest.fixture(scope="module")
def backed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    repo = Filled(tmp_path_factory.mktemp("resume") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    scene = Scene(kafka, target, topics, repo)
    write_sources(topics, kafka.bootstrap)
    scene.back_up(*SOURCES)
    return scene


@pytest.fixture(scope="module", params=("preserve", "translate"))
def killing(request: pytest.FixtureRequest, backed: Scene, forks: Drivers) -> Killing:
    logs = [(topic, p) for topic, partitions in SOURCES.items() for p in range(partitions)]
    found = read_whole(backed.kafka.bootstrap, logs, "read_committed")
    return Killing(backed, forks, request.param, found).measure()


STEPS = {
    "preserve": (
        Point("store", 1, "plan.json"),
        Point("request", 1, "InitProducerId"),  # topics are there, and nothing says that they are ours
        Point("store", 1, "producers."),
        Point("request", 2, "EndTxn"),
        Point("request", 1, "DeleteRecords"),
        Point("request", 1, "OffsetCommit"),
    ),
    "translate": (
        Point("request", 1, "Produce"),  # small batches are merged: one has most of the records
        Point("store", 1, "map."),
        Point("store", 1, "receipt"),
        Point("request", 3, "IncrementalAlterConfigs"),
        Point("request", 1, "OffsetCommit"),
    ),
}
LEFT = {
    "preserve": ["plan", "plan", "producers", "producers", "producers", "groups"],
    "translate": ["producers", "producers", "records", "records", "groups"],
}


def test_a_driver_killed_at_each_step(killing: Killing) -> None:
    """What was stored until then is what the next one goes on from."""
    assert [killing.round(point) for point in STEPS[killing.offsets]] == LEFT[killing.offsets]


def _rounds(killing: Killing, count: int) -> None:
    """Half of them after a store call, half after a request.

    Not surely: a run may need fewer requests than the one that was measured, and nobody dies of a listing that was not
    read to its end.
    """
    chance = seeded(f"drivers of restores, {killing.offsets}")
    for number in range(count):
        if number % 2:
            killing.round(Point("store", chance.randrange(1, killing.store_calls + 1)), surely=False)
        else:
            killing.round(Point("request", chance.randrange(1, killing.requests + 1)), surely=False)
    print(f"{killing.offsets}: {killing.kills} drivers killed, all restores exact; {dict(killing.stages)}")


def test_a_driver_killed_at_random_points(killing: Killing) -> None:
    _rounds(killing, 3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_driver_killed_at_many_points(killing: Killing) -> None:
    before = killing.kills
    _rounds(killing, 64)
    assert killing.kills - before >= 52


def test_two_drivers_resume_at_once(killing: Killing) -> None:
    """Whoever comes second is told so, or does what the first does: nothing comes twice."""
    prefix = killing.prepared()
    restore_id = killing.killed(prefix, Point("store", 1, "producers."))
    assert restore_id is not None
    words = killing.resume_words(restore_id)
    ended = killing.drivers.together(killing.scene.commands, [words, words])
    assert 0 in {each.code for each in ended}, ended
    assert {each.code for each in ended} <= {0, 50}, "\n".join(f"{each.code}: {each.out}" for each in ended)
    killing.assert_exact(prefix, killing.resumed(prefix, restore_id))


def _configs(killing: Killing, prefix: str) -> dict[str, dict[str, str]]:
    return {topic: own_configs(killing.scene.target, prefix + topic) for topic in SOURCES}


def test_a_restore_that_has_ended_is_proven_again_and_nothing_else(killing: Killing) -> None:
    """Also when its topics are in use since: written to, configured otherwise, read by its groups."""
    scene, prefix = killing.scene, killing.prepared()
    first = json.loads(killing.drivers.run(scene.commands, *killing.words(prefix)).out)
    words = killing.resume_words(first["restore"])
    again = json.loads(killing.drivers.run(scene.commands, *words).out)
    assert (again["verdict"], again["restore"], again["records"]) == ("proven", first["restore"], first["records"])
    assert again["groups"] == first["groups"]
    killing.assert_exact(prefix, first["restore"])

    used = f"{prefix}bumpy"
    write(Matrix(scene.target), used, ["by somebody else"] * 3)
    commit(scene.target.bootstrap, GROUP, {(used, 0): 1}, "moved on")
    set_config(scene.target, used, "retention.ms", "123456789")
    before = _configs(killing, prefix), group_positions(scene.target, GROUP), bounds(scene.target, used)
    third = killing.drivers.run(scene.commands, *words)
    assert third.code == 0, third.err
    assert (_configs(killing, prefix), group_positions(scene.target, GROUP), bounds(scene.target, used)) == before
    rows = scene.commands.json("receipts", "show", str(first["restore"]))["groups"]
    assert rows == first["groups"], "what a rollback needs is still there"


def test_what_is_there_is_not_restored_over(killing: Killing) -> None:
    """A second restore to the same names is refused, and so is one of the other kind."""
    scene, prefix = killing.scene, killing.prepared()
    killing.round(Point("store", 1, "receipt"))
    prefix = f"{killing.offsets[0]}{killing.rounds}-"
    rename = ("--topics", "smooth", "--rename", f"s/^/{prefix}/")
    assert f"{prefix}smooth" in scene.refused(*rename, "--offsets", "translate", code=31)
    assert f"{prefix}smooth" in scene.refused(*rename, "--offsets", "preserve", "--into-existing", code=31)
    killing.assert_exact(prefix)

"""Restores that cannot be meant: one error in three parts, its exit code, a target and a repository as they were."""

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from tests.integration.kafka.restore.scene import Scene, positions, read, stored, write
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_view_of_configs import topic_names
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.scripted.unfinished import leave_failed

pytestmark = pytest.mark.xdist_group("kafka-restore")


@pytest.fixture(scope="module")
def backed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    repo = Filled(tmp_path_factory.mktemp("bad") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    scene = Scene(kafka, target, topics, repo)
    topics.create("meant", 2)
    write(topics, "meant", ["a", "b", "c"])
    scene.back_up("meant")
    return scene


@pytest.mark.parametrize(
    ("words", "code", "said"),
    (
        (("20200101000000",), 40, "20200101000000"),
        (("nonsense",), 40, "nonsense"),
        (("--topics", "unmeant"), 40, "the backup has: meant"),
        (("--topics", "["), 40, "not a pattern"),
        (("--exclude", ".*"), 40, "what --exclude leaves"),
        (("--rename", "meant"), 40, "not a valid rename"),
        (("--rename", "s/meant/../"), 40, "not a valid topic name"),
        (("--rename", "meant=__consumer_offsets"), 40, "internal topic"),
        (("--topics", "meant", "--topics", "unmeant"), 40, "no topic of the backup matches unmeant"),
        (("--partitions", "meant:0,7"), 40, "meant has no partition 7"),
        (("--partitions", "1-0"), 40, "1-0 ends before it begins"),
        (("--partitions", "other:0"), 40, "not among the selected topics"),
        (("--until-offset", "meant:0=4"), 40, "[0, 3)"),
        (("--until-offset", "meant:9=1"), 40, "meant/9"),
        (("--until-offset", "meant"), 40, "TOPIC:PARTITION=OFFSET"),
        (("--until-time", "1999-01-01T00:00:00Z"), 40, "nothing would be restored"),
        (("--until-time", "soon"), 40, "--until-time"),
        (("--what", "data,everything"), 40, "choose among data, configs, groups, acls, quotas"),
        (("--what", "groups"), 40, "logkeep kafka groups restore"),
        (("--groups", "nobody"), 40, "no group of the backup matches"),
        (("--offsets", "guess"), 40, "--offsets"),
        (("--replication-factor", "2"), 31, "--replication-factor 1"),
        (("--replication-factor", "0"), 40, "--replication-factor"),
        (("--source", "unknown"), 40, "the sources are: prod"),
        (("--engine", "inline", "--parallel", "3"), 40, "one unit at a time"),
    ),
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_refused(backed: Scene, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in backed.refused(*words, code=code)


def test_a_backup_that_failed(backed: Scene) -> None:
    with Cluster(ClientSettings(endpoints(backed.kafka.bootstrap))) as cluster:
        identity = {"cluster_id": cluster.metadata().cluster_id}
    failed = leave_failed(backed.repo.place(), "kafka", identity)
    assert str(failed) in backed.refused(str(failed), code=40)


def test_nobody_answers(backed: Scene) -> None:
    before = backed.state()
    words = ("kafka", "restore", "latest", "--bootstrap-servers", "127.0.0.1:1", "--yes")
    assert "127.0.0.1:1" in backed.commands.error(*words, code=51)
    assert backed.state() == before


def test_nobody_says_yes(backed: Scene) -> None:
    before = backed.state()
    assert "--yes" in backed.commands.error(*backed.restore_words(), code=3)
    assert backed.state() == before


def test_the_cluster_that_was_backed_up(backed: Scene) -> None:
    """Only when its id is given in so many words; and then it is a cluster like any other."""
    kafka = backed.kafka
    before = stored(backed.repo), topic_names(kafka), positions(kafka)
    words = ("kafka", "restore", "latest", "--rename", "meant=beside", "--bootstrap-servers", kafka.bootstrap, "--yes")
    said = backed.commands.error(*words, code=31)
    cluster = said.partition("--confirm-cluster ")[2].split()[0]
    assert cluster in said.partition("  try:")[0]
    backed.commands.error(*words, "--confirm-cluster", "another", code=31)
    assert (stored(backed.repo), topic_names(kafka), positions(kafka)) == before
    assert backed.commands.json(*words, "--dry-run")["cluster_id"] == cluster
    assert backed.commands.json(*words, "--confirm-cluster", cluster)["verdict"] == "proven"
    assert read(kafka, "beside") == ["a", "b", "c"]

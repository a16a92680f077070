"""Parts of a backup: up to a time or an offset, some topics or partitions, other names, configs alone, other views."""

import time

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.repository.restores import list_restores
from tests.integration.kafka.restore.drivers import Drivers, Point
from tests.integration.kafka.restore.scene import Scene, bounds, read, troubles, write
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_readers import messages
from tests.support.kafka.client_view_of_configs import delete_topic, own_configs, topic_names
from tests.support.kafka.consumer_view import watermarks
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.raw_produce import batch_at, put
from tests.support.kafka.slow_records import Slow
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")
T = 1_700_000_000_000
MOMENT = "2023-11-14T22:13:20Z"
"""T as it is typed."""
FUTURE = 4_102_444_800_000
FUTURE_MOMENT = "2100-01-01T00:00:00Z"


def _batch(*times: int) -> bytes:
    return batch_at([(time, Slow(0, 0, b"k", b"at %d" % (time - T))) for time in times])


@pytest.fixture(scope="module")
def backed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    repo = Filled(tmp_path_factory.mktemp("point") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    _write(kafka, topics)
    scene = Scene(kafka, target, topics, repo)
    scene.back_up("times", "decided", "plain.*")
    return scene


def _write(kafka: EmbeddedKafka, topics: Matrix) -> None:
    topics.create("times", 3, {"retention.ms": "-1"})
    # Partition 0: times out of order, the cut falls into a batch. 1: nothing as late as the cut. 2: all of it is.
    put(kafka.port, "times", 0, [_batch(T - 9, T - 2), _batch(T - 5, T - 1, T, T - 3), _batch(T - 4)])
    put(kafka.port, "times", 1, [_batch(T - 7, T - 6)])
    put(kafka.port, "times", 2, [_batch(T, T + 1)])
    topics.create("decided", 1, {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = topics.producer(transactional_id="decided", transaction_timeout_ms=60_000)
    producer.init_transactions(30)
    for what in ("early", "late"):
        producer.begin_transaction()
        producer.produce("decided", f"{what} one", partition=0)
        producer.flush(30)
        if what == "late":
            put(kafka.port, "decided", 0, [_batch(T), _batch(FUTURE)])
        producer.commit_transaction(30)
        _end_is(kafka, "decided", 2 if what == "early" else 6)
    topics.create("plain", 2)
    topics.create("plain-other", 1)
    for partition in (0, 1):
        write(topics, "plain", [f"{partition}/{i}" for i in range(10)], partition)
    write(topics, "plain-other", ["other"])


def _end_is(kafka: EmbeddedKafka, topic: str, end: int) -> None:
    """Markers come when the transaction has ended for its client already."""
    wait_for(lambda: watermarks(kafka.bootstrap, topic, 0)[1] == end, "the marker")


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_up_to_a_time(backed: Scene, offsets: str) -> None:
    """Before the first record that is as late, wherever it stands: also in the middle of a batch."""
    words = ("--offsets", offsets, "--rename", f"s/$/.{offsets}/")
    done = backed.restore("--topics", "times", "--until-time", MOMENT, *words)
    assert done["verdict"] == "proven"
    values = [read(backed.target, f"times.{offsets}", p) for p in range(3)]
    assert values == [["at -9", "at -2", "at -5", "at -1"], ["at -7", "at -6"], []]
    assert [bounds(backed.target, f"times.{offsets}", p) for p in range(3)] == [(0, 4), (0, 2), (0, 0)]


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_a_transaction_that_is_decided_behind_the_cut(backed: Scene, offsets: str) -> None:
    """It counts as aborted; what others wrote meanwhile comes back. Markers carry the time they were written at."""
    words = ("--offsets", offsets, "--rename", f"s/$/.{offsets}/")
    done = backed.restore("--topics", "decided", "--until-time", FUTURE_MOMENT, *words)
    assert (done["verdict"], done["records"]) == ("proven", 2)
    assert read(backed.target, f"decided.{offsets}") == ["early one", "at 0"]
    assert bounds(backed.target, f"decided.{offsets}") == ((0, 4) if offsets == "preserve" else (0, 2))


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_a_transaction_that_is_decided_later_record_by_record(backed: Scene, offsets: str) -> None:
    """No log is cut then, so its commit counts, whenever it came; only records of that time and later are left out."""
    words = ("--offsets", offsets, "--rename", f"s/$/.records.{offsets}/", "--by-record")
    done = backed.restore("--topics", "decided", "--until-time", FUTURE_MOMENT, *words)
    assert (done["verdict"], done["records"]) == ("proven", 3)
    assert read(backed.target, f"decided.records.{offsets}") == ["early one", "late one", "at 0"]


def test_a_time_before_everything(backed: Scene) -> None:
    words = ("--topics", "times", "--until-time", "2020-01-01T00:00:00Z")
    assert "nothing would be restored" in backed.refused(*words, code=40)
    assert "nothing would be restored" in backed.refused(*words, "--by-record", code=40)
    some = backed.restore(
        "--topics", "times", "--until-time", MOMENT, "--by-record", "--rename", "times=some", "--dry-run"
    )
    assert some["verdict"] == "planned", "partition 2 has nothing older, the others have"


def test_holes_that_leaving_records_out_makes_are_reckoned_with(backed: Scene, topics: Matrix, repo: Filled) -> None:
    """Each run of left out records is a transaction where offsets are kept: 60 of them take a second, 60,000 do not."""
    topics.create("mixed", 1, {"retention.ms": "-1"})
    put(backed.kafka.port, "mixed", 0, [_batch(*(T - 1 + i % 2 for i in range(120)))])
    scene = Scene(backed.kafka, backed.target, topics, repo)
    scene.back_up("mixed")
    words = ("--until-time", MOMENT, "--by-record")
    planned = scene.restore(*words, "--dry-run")
    assert planned["why"] == (
        "records keep their offsets: the topics are new, and filling up to 60 holes takes up to 1 s "
        "(each run of records that --by-record leaves out is a hole)"
    )
    assert planned["seconds"] > 1
    assert planned["records"] == 119, "at most: the index tells of one late record"
    done = scene.restore(*words)
    assert (done["verdict"], done["records"], done["offsets"]) == ("proven", 60, "preserve")
    assert read(scene.target, "mixed") == ["at -1"] * 60


def test_up_to_an_offset_and_some_partitions(backed: Scene) -> None:
    done = backed.restore(
        "--topics", "plain.*", "--exclude", "plain-other", "--partitions", "plain:1", "--until-offset", "plain:1=7",
        "--rename", "plain=partly",
    )  # fmt: skip
    assert (done["verdict"], done["topics"], done["records"]) == ("proven", ["partly"], 7)
    assert read(backed.target, "partly", 1) == [f"1/{i}" for i in range(7)]
    assert bounds(backed.target, "partly", 0) == (0, 0)


def test_what_uncommitted_readers_saw(backed: Scene) -> None:
    done = backed.restore("--topics", "decided", "--isolation", "all", "--until-offset", "decided:0=5",
                          "--rename", "decided=seen", "--offsets", "preserve")  # fmt: skip
    assert done["verdict"] == "proven"
    start, end = bounds(backed.target, "seen")
    source = messages(backed.kafka.bootstrap, "decided", 0, 0, 5)
    found = messages(backed.target.bootstrap, "seen", 0, start, end)
    assert (start, end) == (0, 5)
    assert [(m.offset(), m.value()) for m in found] == [(m.offset(), m.value()) for m in source]


@pytest.mark.parametrize("what", ("configs", "acls", "quotas", "acls,quotas"))
def test_parts_without_records(backed: Scene, what: str) -> None:
    """Nothing was compared, so nothing is proven; topics are only made for their configs."""
    done = backed.restore("--topics", "times", "--rename", "times=bare", "--what", what)
    assert (done["verdict"], done["records"], done["partitions"]) == ("unproven", 0, [])
    assert ("bare" in topic_names(backed.target)) == (what == "configs")
    if what == "configs":
        assert own_configs(backed.target, "bare") == {"retention.ms": "-1"}
        assert bounds(backed.target, "bare") == (0, 0)
        delete_topic(backed.target, "bare")


def test_rules_and_limits_where_topics_are_in_use(backed: Scene) -> None:
    """They touch no topic, so topics that are there are no reason to refuse them."""
    there = Matrix(backed.target)
    write(there, there.create("times-in-use", 3), ["theirs"])
    done = backed.restore("--topics", "times", "--rename", "times=times-in-use", "--what", "acls,quotas")
    assert (done["verdict"], done["topics"]) == ("unproven", [])
    assert read(backed.target, "times-in-use") == ["theirs"]


def test_behind_what_others_wrote(backed: Scene) -> None:
    """Appended, proven from there on, and the topic keeps its own configs; at their own offsets it cannot be."""
    there = Matrix(backed.target)
    name = there.create("theirs", 2, {"retention.ms": "98765"})
    write(there, name, ["theirs"] * 3, 0)
    words = ("--topics", "plain", "--rename", f"plain={name}")
    assert "--into-existing" in backed.refused(
        "--topics", "plain-other", "--rename", f"plain-other={_empty(there)}", code=31
    )
    assert "not empty" in backed.refused(*words, code=31)
    assert "not empty" in backed.refused(*words, "--into-existing", "--offsets", "preserve", code=31)
    done = backed.restore(*words, "--into-existing")
    assert (done["offsets"], done["verdict"]) == ("translate", "proven")
    assert read(backed.target, name, 0) == ["theirs"] * 3 + [f"0/{i}" for i in range(10)]
    assert read(backed.target, name, 1) == [f"1/{i}" for i in range(10)]
    assert own_configs(backed.target, name) == {"retention.ms": "98765"}


def _empty(there: Matrix) -> str:
    return there.create("nothing-in-it")


def test_what_retention_would_delete_is_said_or_kept(
    backed: Scene, topics: Matrix, kafka: EmbeddedKafka, repo: Filled
) -> None:
    topics.create("shortlived", 1, {"retention.ms": "604800000", "message.timestamp.before.max.ms": str(2**63 - 1)})
    now = int(time.time() * 1000)
    put(kafka.port, "shortlived", 0, [_batch(T, now)])  # the source keeps a segment as long as its youngest record
    scene = Scene(kafka, backed.target, topics, repo)
    scene.back_up("shortlived")
    warned = scene.restore("--dry-run", code=2)
    assert [f["code"] for f in troubles(warned)] == ["retention-deletes"]
    done = scene.restore("--keep-all", "--limit-produce", "1MiB")
    assert (done["verdict"], troubles(done)) == ("proven", [])
    assert read(scene.target, "shortlived") == ["at 0", f"at {now - T}"]
    assert own_configs(scene.target, "shortlived")["retention.ms"] == "-1"
    warned = scene.restore("--rename", "shortlived=gone-soon", code=2)
    assert (warned["verdict"], [f["code"] for f in troubles(warned)]) == ("proven", ["retention-deletes"])


def test_a_log_of_a_run_has_the_plan(backed: Scene) -> None:
    """Where --yes answers, nobody has seen it: it is told before the work begins, unless that is not wanted."""
    said = {}
    for flags in ((), ("--quiet",), ("--json",)):
        name = f"logged{''.join(flags)}"
        words = ("--topics", "plain-other", "--rename", f"plain-other={name}", "--yes", *flags)
        done = backed.commands.say(*backed.restore_words(*words))
        assert done.code == 0, done
        said[flags] = done.err
    plan = ("up to 1 record", "offsets: preserve (records keep their offsets", "plain-other/0")
    told = said[()]
    assert all(told.index(each) < told.index("begins; to resume it after an interruption") for each in plan), told
    assert not any(each in said[flags] for each in plan for flags in (("--quiet",), ("--json",)))


def test_replicas(backed: Scene) -> None:
    """More than there are brokers are refused, and what helps is said."""
    words = ("--topics", "plain-other", "--rename", "plain-other=replicas")
    assert "--replication-factor" in backed.refused(*words, "--replication-factor", "3", code=31)
    assert backed.restore(*words, "--replication-factor", "1")["verdict"] == "proven"


def test_a_relative_time_is_that_of_the_first_run_also_when_it_is_resumed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, repo: Filled, forks: Drivers
) -> None:
    """A record every tenth of a second: any later moment would restore more of them."""
    scene = Scene(kafka, target, topics, repo)
    topics.create("relative", 1, {"retention.ms": "-1"})
    begin = int(time.time() * 1000) - 30 * 60_000
    times = range(begin - 1_000, begin + 300_000, 100)
    put(kafka.port, "relative", 0, [batch_at([(at, Slow(0, 0, b"k", b"%d" % at)) for at in times])])
    scene.back_up("relative")
    words = scene.restore_words("--topics", "relative", "--until-time=-30m", "--yes", "--json")
    began = _half_an_hour_ago()
    assert forks.run(scene.commands, *words, point=Point("store", 1, "plan.json")).killed
    ended = _half_an_hour_ago()
    (begun,) = list_restores(repo.place())
    assert "--until-time cannot change it" in scene.refused("--resume", str(begun.id), "--until-time=-30m", code=40)
    resumed = scene.restore("--resume", str(begun.id))
    assert resumed["verdict"] == "proven"
    until_ms = int(scene.commands.json("receipts", "show", str(begun.id))["options"]["until-time"])
    assert began <= until_ms <= ended, "the moment of the first run, as an absolute time"
    assert [int(value) for value in read(target, "relative")] == [at for at in times if at < until_ms]


def _half_an_hour_ago() -> float:
    return (time.time() - 30 * 60) * 1000

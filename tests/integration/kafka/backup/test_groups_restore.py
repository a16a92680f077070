"""Groups alone: a real consumer goes on in the target with the record that it would have read next, in every case."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import pytest
from confluent_kafka import Consumer

from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.config.places import NOWHERE
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.run_map.file_format import Route
from logkeep.kafka.admin.group_changes import delete_groups, move_share_groups
from logkeep.kafka.admin.groups import CommittedOffset, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore import groups as set_groups_module
from logkeep.kafka.restore import groups_run
from logkeep.kafka.restore.groups import set_groups
from logkeep.kafka.restore.plan.groups import GroupsPlan
from logkeep.model.time import random_token
from logkeep.repository.restores import RestoreVerdict, list_restores, newest_receipt
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.group_topic import NOT_RESTORED, ROWS, Copy, Row, commit, next_records, write_rows
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")
T = int(time.time() * 1000) - 60_000
"""A time of records, of which retention deletes none."""


class Scene:
    """The command, the cluster, and what an independent client does there."""

    def __init__(self, kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
        self.kafka, self.topics, self.repo = kafka, topics, repo

    def cluster(self) -> Cluster:
        return Cluster(ClientSettings(endpoints(self.kafka.bootstrap)))

    def back_up(self, *topics: str, internal: bool = False) -> int:
        return int(Archive(self.kafka.bootstrap, self.repo.place()).back_up(*topics, internal=internal).entry.id)

    def groups(self, *arguments: str, code: int = 0) -> Any:
        """The command in this process, which is quicker: its document, or what it said when it failed."""
        argv = ["kafka", "groups", *arguments, "--bootstrap-servers", self.kafka.bootstrap, "--json"]
        out, err, environ = StringIO(), StringIO(), {"LOGKEEP_REPO": self.repo.url, "HOME": str(self.repo.home)}
        with redirect_stdout(out), redirect_stderr(err):
            world = World(environ, standard_console(environ, stdin=StringIO()), lambda _: NOWHERE, json=True)
            ended = call(argv, world)
        assert ended == code, err.getvalue()
        return json.loads(out.getvalue() or err.getvalue())

    def offsets(self, group: str, topic: str) -> dict[int, CommittedOffset]:
        with self.cluster() as cluster:
            found = group_offsets(cluster, [group])[group]
        return {log.partition: c for log, c in found.items() if log.topic == topic}

    def copy(self) -> Copy:
        return Copy(self.kafka.bootstrap, self.topics.producer())

    def cluster_id(self) -> str:
        with self.cluster() as cluster:
            return cluster.metadata().cluster_id


@pytest.fixture
def scene(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> Scene:
    return Scene(kafka, topics, repo)


def test_every_row_of_the_table(scene: Scene) -> None:
    """Several topics in one group, all renamed, into targets that are not empty; twice; and undone."""
    old, bootstrap = ("rows-a", "rows-b"), scene.kafka.bootstrap
    for topic in (*old, "rows-unrelated"):
        write_rows(bootstrap, scene.topics, topic) if topic in old else scene.topics.create(topic)
    wanted = {(t, p): row.committed for t in old for p, row in enumerate(ROWS)}
    commit(bootstrap, "rows", {**wanted, ("rows-a", NOT_RESTORED): 2, ("rows-unrelated", 0): 0})
    backup = scene.back_up("rows-.*")
    restore = str(_copied(scene, old, backup))
    commit(bootstrap, "rows", {("rows-a-back", 0): 1, ("rows-unrelated", 0): 0}, "before")

    foreseen = scene.groups("restore", restore, "--groups", "ro.s", "--dry-run", code=2)
    assert len(scene.offsets("rows", "rows-a-back")) == 1
    done = scene.groups("restore", restore, "--groups", "ro.s", "-y", code=2)
    assert {**done, "id": None, "dry_run": True} == foreseen
    assert (done["groups"], done["overwritten"], done["reread"], done["untouched"]) == (1, 1, 0, [])
    left = {(r["topic"], r["partition"]): r["detail"] for r in done["positions"] if r["offset"] is None}
    assert left == {
        ("rows-a", NOT_RESTORED): "the partition was not restored",
        ("rows-unrelated", 0): "the topic was not restored",
    }
    source = scene.offsets("rows", "rows-a")
    restored = scene.offsets("rows", "rows-a-back")
    assert {p: c.metadata for p, c in restored.items()} == {p: source[p].metadata for p in range(len(ROWS))}
    assert {c.leader_epoch for c in restored.values()} == {-1}
    _goes_on(scene, old)

    again = scene.groups("restore", restore, "--groups", "rows", "-y", code=2)
    assert {r["offset"] == r["previous_offset"] for r in again["positions"]} == {True}
    assert scene.offsets("rows", "rows-a-back") == restored
    undone = scene.groups("rollback", str(done["id"]), "-y")
    assert undone["groups"] == 1
    assert {p: (c.offset, c.metadata) for p, c in scene.offsets("rows", "rows-a-back").items()} == {0: (1, "before\0")}
    assert scene.offsets("rows", "rows-b-back") == {}
    assert scene.offsets("rows", "rows-a") == source, "what a restore did not touch, a rollback does not touch"
    scene.groups("rollback", str(undone["id"]), "-y")
    assert scene.offsets("rows", "rows-a-back") == restored, "undoing can be undone"


def _copied(scene: Scene, old: tuple[str, ...], backup: int) -> int:
    copy = scene.copy()
    for topic in old:
        target = scene.topics.create(f"{topic}-back", len(ROWS))
        copy.fill(target, len(ROWS), 3)
        copy.move({Route(topic, p, target, p): _restored(row) for p, row in enumerate(ROWS)})
    return copy.receipt(scene.repo.place(), backup, scene.cluster_id())


def _restored(row: Row) -> range:
    end = 21 if "marker" in row.name or "hole" in row.name else 20
    return range(10 if "expired" in row.name else 0, min(row.until, end))


def _goes_on(scene: Scene, old: tuple[str, ...]) -> None:
    producer = scene.topics.producer()
    for topic in old:
        for p in range(len(ROWS)):
            producer.produce(f"{topic}-back", "new", partition=p)
    producer.flush(30)
    targets = [f"{topic}-back" for topic in old]
    found = next_records(scene.kafka.bootstrap, "rows", targets, len(old) * len(ROWS))
    expected = {
        (f"{topic}-back", p): "new" if row.next is None else f"{topic}/{p}/{row.next}"
        for topic in old
        for p, row in enumerate(ROWS)
    }
    assert found == expected


def test_offsets_as_they_are(scene: Scene) -> None:
    """Without a map: for records that stand at their own offsets, kept inside of the log that is there."""
    source, target = scene.topics.create("kept", 3), scene.topics.create("kept-back", 2)
    producer = scene.topics.producer()
    for p in (0, 1, 2):
        for i in range(10):
            producer.produce(source, f"{i}", partition=p)
    for i in range(8):
        producer.produce(target, f"{i}", partition=0)
        producer.produce(target, f"{i}", partition=1)
    producer.flush(30)
    commit(scene.kafka.bootstrap, "kept", {(source, 0): 4, (source, 1): 9, (source, 2): 1})
    backup = str(scene.back_up("kept"))
    done = scene.groups("restore", "--backup", backup, "--rename", "kept=kept-back", "--groups", "kept", "-y", code=2)
    assert {p: c.offset for p, c in scene.offsets("kept", target).items()} == {0: 4, 1: 8}
    why = {(r["topic"], r["partition"]): r["detail"] for r in done["positions"]}
    assert why["kept-back", 1] == "it had read further than what was restored"
    assert why["kept", 2] == "the target does not have this partition"
    assert next_records(scene.kafka.bootstrap, "kept", [target], 1)[target, 0] == "4"
    told = scene.repo.run("kafka", "groups", "rollback", "latest", "-y", "--bootstrap-servers", scene.kafka.bootstrap)
    assert "undoes it" in told.stdout
    assert scene.offsets("kept", target) == {}


def test_a_repartitioned_topic_misses_nothing_and_counts_what_is_read_again(scene: Scene) -> None:
    source, target = scene.topics.create("wide", 2), scene.topics.create("narrow", 1)
    producer = scene.topics.producer()
    for p in (0, 1):
        for i in range(6):
            producer.produce(source, f"wide/{p}/{i}", partition=p)
    producer.flush(30)
    commit(scene.kafka.bootstrap, "wide", {(source, 0): 5, (source, 1): 2})
    backup = scene.back_up("wide")
    copy = scene.copy()
    for i in range(6):
        for p in (0, 1):
            copy.place(Route(source, p, target, 0), range(6), i, f"wide/{p}/{i}")
    restore = copy.receipt(scene.repo.place(), backup, scene.cluster_id())
    done = scene.groups("restore", str(restore), "--groups", "wide", "-y", code=2)
    (row,) = done["positions"]
    # 0/0 1/0 0/1 1/1 0/2 [1/2] 0/3 …: behind 1/2 stand 0/3 and 0/4, which the group has read already.
    assert (row["offset"], row["reread"], row["exact"]) == (5, 2, False)
    assert next_records(scene.kafka.bootstrap, "wide", [target], 1) == {(target, 0): "wide/1/2"}


def test_a_group_that_is_read_by_is_refused_with_its_members(scene: Scene) -> None:
    topic = scene.topics.create("busy", 1)
    commit(scene.kafka.bootstrap, "busy", {(topic, 0): 0})
    backup = str(scene.back_up("busy"))
    settings = {"bootstrap.servers": scene.kafka.bootstrap, "group.id": "busy", "client.id": "till-7"}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.2)
        said = scene.groups("restore", "--backup", backup, "--groups", "busy", "-y", code=31)
        assert "busy (till-7 at 127.0.0.1)" in str(said)
    scene.groups("restore", "--backup", backup, "--groups", "busy", "-y")


def test_share_groups_by_where_they_start(scene: Scene) -> None:
    source, target = scene.topics.create("shared-rows", 2), scene.topics.create("shared-back", 2)
    producer = scene.topics.producer()
    for topic in (source, target):
        for p in (0, 1):
            for i in range(5):
                producer.produce(topic, f"{i}", partition=p, timestamp=T + i)
    producer.flush(30)
    logs = [TopicPartition(source, p) for p in (0, 1)]
    with scene.cluster() as cluster:
        assert move_share_groups(cluster, {"sharers": dict(zip(logs, (3, 4), strict=True))}) == {"sharers": ()}
    backup = str(scene.back_up("shared-rows"))
    scene.groups("restore", "--backup", backup, "--rename", "shared-rows=shared-back", "--groups", "sharers", "-y")
    assert _starts(scene, target) == {0: 3, 1: 4}
    tool, server = "org.apache.kafka.tools.consumer.group.ShareGroupCommand", scene.kafka.bootstrap
    told = scene.kafka.java_tool(tool, ["--bootstrap-server", server, "--describe", "--offsets", "--group", "sharers"])
    assert sorted(line.split()[1:4] for line in told.splitlines() if "shared-back" in line) == [
        ["shared-back", "0", "3"],
        ["shared-back", "1", "4"],
    ]
    scene.groups("rollback", "latest", "-y")
    assert _starts(scene, target) == {}
    assert _starts(scene, source) == {0: 3, 1: 4}


def _starts(scene: Scene, topic: str) -> dict[int, int]:
    with scene.cluster() as cluster:
        found = share_group_offsets(cluster, ["sharers"])["sharers"]
    return {log.partition: c.offset for log, c in found.items() if log.topic == topic}


def _write(scene: Scene, topic: str, values: list[str], start: int = T) -> None:
    producer = scene.topics.producer()
    for i, value in enumerate(values):
        producer.produce(topic, value, partition=0, timestamp=start + i)
    producer.flush(30)


RECREATED = {
    "same": (["0", "1", "2", "3", "4"], ("", True)),
    "same-below": (["0", "1", "2"], ("it had read everything", True)),
    "other-below": (["0", "1", "x", "3", "4"], ("holds other records there", False)),
    "other-above": (["0", "1", "2", "x", "4"], ("holds other records there", False)),
    "empty": ([], ("it had read further than what was restored", False)),
}
"""Records of the topic that was created again, and what is said of offset 3 in it."""


@pytest.mark.parametrize("case", RECREATED)
def test_a_topic_that_was_deleted_and_created_again(scene: Scene, case: str) -> None:
    """Its name and offsets say nothing: the archived records around the offset decide."""
    values, (detail, exact) = RECREATED[case]
    topic = scene.topics.create(f"again-{case}", 1)
    _write(scene, topic, ["0", "1", "2", "3", "4"])
    commit(scene.kafka.bootstrap, case, {(topic, 0): 3})
    backup = str(scene.back_up(topic))
    scene.topics.delete(topic)
    scene.topics.create(topic, 1)
    _write(scene, topic, values)
    code = 0 if exact else 2
    done = scene.groups("restore", "--backup", backup, "--groups", case, "--topics", topic, "-y", code=code)
    (row,) = done["positions"]
    assert (row["exact"], detail in row["detail"]) == (exact, True), row
    assert done["chosen_topics"] == [topic]


def test_a_topic_created_again_without_records_to_compare(scene: Scene) -> None:
    topic = scene.topics.create("never-written", 1)
    commit(scene.kafka.bootstrap, "waiting", {(topic, 0): 0})
    backup = str(scene.back_up(topic))
    scene.topics.delete(topic)
    scene.topics.create(topic, 1)
    done = scene.groups("restore", "--backup", backup, "--groups", "waiting", "-y", code=2)
    (row,) = done["positions"]
    assert not row["exact"]
    assert "no record there shows that it holds the same" in row["detail"]


def test_positions_that_the_deletion_of_a_topic_erased(scene: Scene) -> None:
    """They come from the archived log of the internal topic, and the group that only existed there is removed again."""
    topic = scene.topics.create("erased", 1)
    producer = scene.topics.producer()
    for i in range(10):
        producer.produce(topic, f"{i}", partition=0, timestamp=T + i)
    producer.flush(30)
    backup = str(scene.back_up("erased"))
    commit(scene.kafka.bootstrap, "forgotten", {(topic, 0): 6})
    scene.topics.delete(topic)
    with scene.cluster() as cluster:
        wait_for(lambda: not group_offsets(cluster, ["forgotten"])["forgotten"], "the broker to forget")
    later = str(scene.back_up("__consumer_offsets", internal=True))
    scene.topics.create(topic, 1)
    for i in range(10):
        producer.produce(topic, f"{i}", partition=0, timestamp=T + i)
    producer.flush(30)
    common = ("restore", "--backup", backup, "--groups", "forgotten", "--topics", "erased")
    assert "no group of the backup matches" in str(scene.groups(*common, "-y", code=40))
    scene.groups(*common, "--erased-from", later, "-y")
    assert next_records(scene.kafka.bootstrap, "forgotten", [topic], 1) == {(topic, 0): "6"}
    scene.groups("rollback", "latest", "-y")
    with scene.cluster() as cluster:
        assert "forgotten" not in {g.name for g in list_groups(cluster)}


@pytest.fixture
def simple(scene: Scene) -> Iterator[tuple[str, str]]:
    """A group without a position in a topic, and a backup from when it had one."""
    topic = scene.topics.create(f"simple-{random_token()}", 1)
    commit(scene.kafka.bootstrap, topic, {(topic, 0): 0})
    backup = str(scene.back_up(topic))
    with scene.cluster() as cluster:
        assert delete_groups(cluster, [topic]) == {topic: ()}
        yield topic, backup
        delete_groups(cluster, [topic])


def test_a_run_that_was_killed_can_be_undone(
    scene: Scene, simple: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, backup = simple

    def killed(cluster: Cluster, plan: GroupsPlan) -> None:
        set_groups(cluster, plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(groups_run, "set_groups", killed)
    scene.groups("restore", "--backup", backup, "--groups", topic, "-y", code=130)
    assert scene.offsets(topic, topic) == {0: CommittedOffset(0, -1, f"{topic}/0\0")}
    scene.groups("rollback", "latest", "-y")
    assert scene.offsets(topic, topic) == {}


def test_positions_are_looked_at_after_they_were_set(
    scene: Scene, simple: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, backup = simple
    monkeypatch.setattr(set_groups_module, "commit_offsets", lambda _cluster, commits: dict.fromkeys(commits, ()))
    said = scene.groups("restore", "--backup", backup, "--groups", topic, "-y", code=30)
    assert "has no offset instead of offset 0" in str(said)
    receipt = newest_receipt(scene.repo.place(), list_restores(scene.repo.place())[-1].id)
    assert receipt is not None
    assert (receipt.verdict, [f.code for f in receipt.findings]) == (RestoreVerdict.FAILED, ["restore-failed"])


def test_what_cannot_be_meant(scene: Scene) -> None:
    topic = scene.topics.create("unmeant", 1)
    commit(scene.kafka.bootstrap, "unmeant", {(topic, 0): 0})
    backup = scene.back_up("unmeant")
    copy = scene.copy()
    copy.place(Route(topic, 0, topic, 0), range(1), None, "")
    elsewhere = copy.receipt(scene.repo.place(), backup, "another-cluster")
    assert "another-cluster" in str(scene.groups("restore", str(elsewhere), "-y", code=31))
    copy.ends[topic, 0] = 5
    longer = copy.receipt(scene.repo.place(), backup, scene.cluster_id())
    assert "recreated" in str(scene.groups("restore", str(longer), "-y", code=31))
    assert "has set no groups" in str(scene.groups("rollback", str(longer), "-y", code=40))
    far = scene.groups("restore", "--backup", "latest", "--groups", "unmeant", "--rename", "unmeant=nowhere", code=2)
    assert (far["groups"], far["untouched"], far["id"]) == (0, ["unmeant"], None)
    for arguments in (("restore",), ("restore", str(longer), "--backup", "latest"), ("restore", "7")):
        scene.groups(*arguments, "-y", code=40)
    scene.groups("restore", "--backup", "latest", "--groups", "unmeant", code=3)

"""A folded archive, restored to a real broker: what a consumer and a group saw at every kept cut."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.integration.kafka.restore.scene import Scene, group_positions, log_end
from tests.support.kafka.cleaned_topics import latest
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.copied_logs import object_paths
from tests.support.kafka.group_topic import commit

pytestmark = pytest.mark.xdist_group("kafka-restore")
TOPIC, GROUP = "folded", "folded-readers"
KEYS, ROUNDS = 40, 3


@dataclass(frozen=True)
class _Consumed:
    """The latest values of a topic, and the latest records from a group's position on, tombstones too."""

    table: Mapping[bytes, bytes]
    next: Mapping[bytes | None, bytes | None]


def _consumed(kafka: EmbeddedKafka, topic: str) -> _Consumed:
    position, _ = group_positions(kafka, GROUP)[topic, 0]
    left = {r.key: r.value for offset, r in seen(kafka.bootstrap, topic, 0).items() if offset >= position}
    assert left
    return _Consumed(latest(kafka.bootstrap, topic), left)


def _write(scene: Scene, number: int) -> None:
    """Every key several times; some deleted; a transaction that is committed and one that is aborted."""
    producer = scene.topics.producer(batch_num_messages=7, compression_type=("lz4", "none", "zstd")[number])
    for again in range(5):
        for key in range(KEYS):
            value = None if (key + number) % 10 == 0 else b"%d.%d.%d " % (number, again, key) * 20
            producer.produce(TOPIC, value, b"k%d" % key, 0, headers=[("n", b"%d" % again)])
    assert producer.flush(60) == 0
    for commits in (True, False):
        one = scene.topics.producer(**{"transactional.id": f"fold-{number}-{commits}"})
        one.init_transactions(30)
        one.begin_transaction()
        one.produce(TOPIC, b"in transaction %d" % number, b"t%d" % commits, 0)
        one.produce(TOPIC, b"by %d" % number, b"k1" if commits else b"k2", 0)
        (one.commit_transaction if commits else one.abort_transaction)(30)
    producer.produce(TOPIC, b"end %d" % number, b"end", 0)
    assert producer.flush(60) == 0


def _back_up(scene: Scene) -> int:
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", TOPIC)
    backup: int = scene.commands.json("kafka", "backup", *where)["id"]
    return backup


def _restored(scene: Scene, backup: int, offsets: str) -> _Consumed:
    scene.restore(str(backup), "--rename", f"s/^/{offsets}-{backup}-/", "--offsets", offsets, "--groups", GROUP)
    return _consumed(scene.target, f"{offsets}-{backup}-{TOPIC}")


def test_a_folded_archive_restores_what_a_consumer_saw(scene: Scene) -> None:
    scene.topics.create(TOPIC, 1, {"cleanup.policy": "compact"})
    consumed = dict[int, _Consumed]()
    for number in range(ROUNDS):
        _write(scene, number)
        # Most records that the group reads next are gone after the fold.
        commit(scene.kafka.bootstrap, GROUP, {(TOPIC, 0): log_end(scene.kafka, TOPIC) - 3 * KEYS})
        consumed[_back_up(scene)] = _consumed(scene.kafka, TOPIC)
    assert len({frozenset(each.table.items()) for each in consumed.values()}) == ROUNDS
    old = set(object_paths(scene.repo.root, ".log"))
    would: dict[str, Any] = scene.commands.json("kafka", "fold", "--dry-run", "--source", "prod")
    assert [log["folded"] for log in would["logs"]] == [True]
    scene.commands.error("kafka", "fold", "--source", "prod", code=3)
    (done,) = scene.commands.json("kafka", "fold", "--source", "prod", "--yes")["logs"]
    assert (done["folded"], done["cuts"]) == (True, ROUNDS)
    assert done["records_after"] < done["records_before"] / 3
    _readable_by_apache(scene, old)
    first, second, newest = sorted(consumed)
    for backup, offsets in ((first, "preserve"), (second, "translate"), (newest, "preserve")):
        assert _restored(scene, backup, offsets) == consumed[backup]
    scene.commands.json("verify", str(newest), "--level", "records")
    where = ("--bootstrap-servers", scene.kafka.bootstrap)
    compared = scene.commands.json("verify", str(newest), "--level", "source", *where)
    assert "source-compared" in {each["code"] for each in compared["findings"]}
    _points_are_refused(scene, newest)
    _write(scene, 0)
    later = _back_up(scene)
    assert _restored(scene, later, "preserve") == _consumed(scene.kafka, TOPIC)


def _readable_by_apache(scene: Scene, old: set[Any]) -> None:
    new = sorted(set(object_paths(scene.repo.root, ".log")) - old)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = scene.kafka.java_tool(tool, ["--deep-iteration", "--files", ",".join(map(str, new))])
    assert new
    assert "isvalid: false" not in said
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) > KEYS


def _points_are_refused(scene: Scene, backup: int) -> None:
    for point in (("--until-offset", f"{TOPIC}:0=100"), ("--until-time", "2020-01-01T00:00:00Z")):
        said = scene.refused(str(backup), "--rename", "s/^/refused-/", *point, code=40)
        assert "were folded" in said
        assert "the whole backups" in said

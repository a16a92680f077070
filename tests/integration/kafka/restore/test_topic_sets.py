"""Topics that belong together on a real broker: `info` shows them, a restore that tears them apart names the rest."""

import pytest

from tests.integration.kafka.restore.scene import Scene, write
from tests.support.kafka.group_topic import commit

pytestmark = pytest.mark.xdist_group("kafka-restore")

_COMPACT = {"cleanup.policy": "compact"}
_CONNECT = ("connect-configs", "connect-offsets", "connect-status")


def test_a_restore_of_a_part_names_the_rest(scene: Scene) -> None:
    for name in (*_CONNECT, "ledger-totals-changelog"):
        scene.topics.create(name, 1, _COMPACT)
    for name in ("ledger-by-customer-repartition", "bookings"):
        scene.topics.create(name, 1)
        write(scene.topics, name, ["a", "b"])
    commit(scene.kafka.bootstrap, "ledger", {("bookings", 0): 2})
    commit(scene.kafka.bootstrap, "connect-warehouse", {("bookings", 0): 1})
    backup = str(scene.back_up("connect-.*", "ledger-.*", "bookings"))
    sets = {found["kind"]: found for found in scene.commands.json("info", backup)["kafka"]["sets"]}
    assert tuple(sets["kafka-connect"]["topics"]) == _CONNECT
    assert sets["kafka-connect"]["groups"] == ["connect-warehouse"]
    assert (sets["kafka-streams"]["name"], sets["kafka-streams"]["inputs"]) == ("ledger", ["bookings"])
    assert "kafka-streams ledger" in scene.commands.say("info", backup).out

    def torn(*topics: str, code: int) -> list[str]:
        chosen = [word for topic in topics for word in ("--topics", topic)]
        words = (*scene.restore_words("latest", *chosen, "--dry-run"),)
        findings = scene.commands.json(*words, code=code)["findings"]
        return [f"{f['where']}: {f['what']}" for f in findings if f["code"] == "topic-set-torn"]

    (connect,) = torn("connect-offsets", code=2)
    assert "Kafka Connect cluster connect" in connect
    assert connect.endswith("not restored: bookings, connect-configs, connect-status")
    (streams,) = torn("ledger-totals-changelog", code=2)
    assert streams.endswith("not restored: bookings, ledger-by-customer-repartition")
    assert torn("connect-.*", "ledger-.*", "bookings", code=0) == []

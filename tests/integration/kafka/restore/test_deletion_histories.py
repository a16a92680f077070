"""Random histories of compacted topics with the cleaner at work: every backup holds what a recorder read at its cut."""

import json
import random

import pytest

from tests.crash.seeds import seeded
from tests.integration.kafka.restore.scene import Scene
from tests.soak_counts import soak_count
from tests.support.kafka.random_histories import Difference, Histories, Table, TopicReader, difference, latest_of
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")


class _Compared:
    """Backups of all histories, each with the tables that it must restore to."""

    def __init__(self, scene: Scene, prefix: str, many: int, seed: random.Random) -> None:
        self.scene, self.prefix, self.choice = scene, prefix, seed
        self.histories = Histories(scene.topics, scene.kafka.bootstrap, prefix, many, seed.randrange(10**9))
        self.expected: dict[int, dict[str, Table]] = {}
        self.unproven = self.compared = self.buried = 0

    def round(self) -> None:
        for _ in range(self.choice.randint(1, 4)):
            self.histories.change()
        if self.choice.random() < 0.7:
            wait_for(self.histories.cleaned, "the cleaner")
        self.histories.tick()
        self._back_up()

    def _back_up(self) -> None:
        words = ("--bootstrap-servers", self.scene.kafka.bootstrap, "--source", "prod", "--topics", f"{self.prefix}-.*")
        said = self.scene.commands.say("kafka", "backup", *words, "--json")
        assert said.code in (0, 2), said.err
        backup = json.loads(said.out)
        assert {f["code"] for f in backup["findings"] if f["severity"] != "note"} <= {"deletions-unproven"}
        doubtful = {f["where"].rpartition("/")[0] for f in backup["findings"] if f["code"] == "deletions-unproven"}
        self.unproven += len(doubtful)
        logs = self._logs(backup["id"])
        self.expected[backup["id"]] = {
            name: topic.table(logs[name][0]) for name, topic in self.histories.topics.items() if name not in doubtful
        }
        self.buried = sum(buried for _, buried in logs.values())

    def _logs(self, backup: int) -> dict[str, tuple[int, int]]:
        """The end of each topic's only log, and how many of its offsets are buried."""
        topics = self.scene.commands.json("info", str(backup), "--all")["kafka"]["topics"]
        return {topic["name"]: (topic["logs"][0]["end"], topic["logs"][0].get("buried", 0)) for topic in topics}

    def differences(self) -> Difference:
        """Every backup restored, over all of them."""
        total = Difference(0, 0, 0)
        for backup, expected in self.expected.items():
            said = self.scene.commands.say(
                *self.scene.restore_words(str(backup), "--rename", f"s/^/r{backup}-/", "--yes", "--json")
            )
            assert said.code in (0, 2), said.err
            found = self._tables([f"r{backup}-{name}" for name in self.histories.topics])
            one = difference(expected, {name: found[f"r{backup}-{name}"] for name in expected})
            assert one == Difference(0, 0, 0), (backup, one, _named(expected, found, backup))
            total = Difference(
                total.resurrected + one.resurrected, total.missing + one.missing, total.wrong + one.wrong
            )
            self.compared += len(expected)
        return total

    def _tables(self, topics: list[str]) -> dict[str, Table]:
        reader = TopicReader(self.scene.target.bootstrap, topics, "read_committed")
        records: dict[str, list[tuple[bytes, bytes | None]]] = {topic: [] for topic in topics}
        for topic, _, key, value in reader.new():
            records[topic].append((key, value))
        reader.close()
        return {topic: latest_of(some) for topic, some in records.items()}


def _named(expected: dict[str, Table], found: dict[str, Table], backup: int) -> dict[str, tuple[Table, Table]]:
    return {n: (t, found[f"r{backup}-{n}"]) for n, t in expected.items() if found[f"r{backup}-{n}"] != t}


def _run(scene: Scene, prefix: str, many: int, rounds: int) -> None:
    compared = _Compared(scene, prefix, many, seeded(prefix))
    try:
        for _ in range(rounds):
            compared.round()
        found = compared.differences()
    finally:
        compared.histories.close()
    print(
        f"{many} histories, {len(compared.expected)} backups, {compared.compared} tables compared: {found}; "
        f"{compared.buried} offsets buried, {compared.unproven} logs left unproven"
    )
    assert compared.compared > many * rounds / 2, "most logs are proven"


def test_random_histories(scene: Scene) -> None:
    _run(scene, "random", 3, 3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_random_histories(scene: Scene) -> None:
    _run(scene, "history", soak_count(50), 4)

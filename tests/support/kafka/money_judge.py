"""Restores backups of the shop to an empty cluster, lets it finish there, and asks an independent recorder."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.client_view_of_configs import admin, topic_names
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.controlled_process import Control
from tests.support.kafka.log_recorder import LogRecorder, end_offsets
from tests.support.kafka.shop_under_faults import PARTITIONS, Fleet
from tests.support.processes import wait_for
from tests.support.shop import difference


class MoneyJudge:
    """`source` is what the recorder has of the application that was backed up."""

    def __init__(self, commands: Commands, target: EmbeddedKafka, home: Path, name: str, source: LogRecorder) -> None:
        self._commands, self._target, self._home, self._name = commands, target, home, name
        self._source = source
        self.counts: Counter[str] = Counter()

    def check(self, backup_id: int, before: set[str], begun: set[str]) -> None:
        """The cut, and the state that comes of it: with all orders of `before`, and none that is not in `begun`."""
        under_way, orphans = self._source.under_way(backup_id)
        assert orphans == 0
        self.counts["cuts with messages under way"] += under_way > 0
        self.counts["messages under way"] += under_way
        self.counts["forced checkpoints"] += sum(cut.forced for cut in self._source.cuts(backup_id))
        self._certify(backup_id)
        state = self._source.state(backup_id)
        assert before <= _orders(state) <= begun
        with self._restored(backup_id) as log:
            starts = end_offsets(self._target.bootstrap, log, PARTITIONS)
            drained = self._drain(backup_id)
            after = LogRecorder(self._target.bootstrap, log, PARTITIONS, starts)
            after.fold(state)
        assert drained == state
        assert _orders(drained) == _orders(self._source.state(backup_id))
        assert difference(drained) == 0
        self.counts["restored, drained and equal to the recorder's"] += 1

    def _certify(self, backup_id: int) -> None:
        words = ("verify", str(backup_id), "--source", self._name, "--level", "cut", "--engine", "inline")
        found = self._commands.json(*words)["certificate"]
        assert not [rule for rule in found["rules"] if rule["outcome"] == "broken"]
        self.counts["certified"] += 1

    @contextmanager
    def _restored(self, backup_id: int) -> Iterator[str]:
        """The topic of the log. The cluster is empty before and afterwards."""
        assert not self._topics()
        words = ("app", "restore", str(backup_id), "--source", self._name, "--engine", "inline", "--yes")
        done = self._commands.json(*words, "--bootstrap-servers", self._target.bootstrap)
        assert all(one["proven"] for one in done["partitions"])
        try:
            yield f"{self._name}.log.h{done['history']}"
        finally:
            client = admin(self._target)
            for deleted in client.delete_topics(self._topics()).values():
                deleted.result(30)
            wait_for(lambda: not self._topics(), "no topics")

    def _topics(self) -> list[str]:
        return [topic for topic in topic_names(self._target) if topic.startswith(f"{self._name}.")]

    def _drain(self, backup_id: int) -> dict[str, Any]:
        """The state once every message has arrived."""
        data = f"restored-{backup_id}"
        control = Control(self._home / f"control-{data}")
        with Fleet(self._home, self._target.bootstrap, self._name, control, [data])():
            wait_for(lambda: _replayed(self._home / data, backup_id), "the replay of all partitions")
            # twice: a message that was sent between two looks is seen by the second one
            wait_for(lambda: _is_empty(self._home / data) and _is_empty(self._home / data), "empty outboxes")
            return _values(self._home / data)


def _orders(state: dict[str, Any]) -> set[str]:
    return {key for key in state if key.startswith("o-")}


@contextmanager
def _states(directory: Path) -> Iterator[list[SqliteState]]:
    states = [SqliteState(path / "state.sqlite") for path in sorted(directory.glob("p*"))]
    try:
        yield states
    finally:
        for state in states:
            state.close()


def _replayed(directory: Path, backup_id: int) -> bool:
    if len(list(directory.glob("p*/state.sqlite"))) < PARTITIONS:
        return False
    with _states(directory) as states:
        found = [state.get_system("cut") for state in states]
    cuts = [msgspec.msgpack.decode(data, type=CutFacts | None) if data else None for data in found]
    return all(cut is not None and cut.id == backup_id for cut in cuts)


def _is_empty(directory: Path) -> bool:
    with _states(directory) as states:
        return not any(key.startswith("outbox/") for state in states for key, _ in state.system_items())


def _values(directory: Path) -> dict[str, Any]:
    with _states(directory) as states:
        return {key: msgspec.msgpack.decode(value) for state in states for key, value in state.items()}

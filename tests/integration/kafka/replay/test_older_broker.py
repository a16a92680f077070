"""Holes and first offsets on the oldest broker that is supported."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome
from logkeep.kafka.restore.replay.task import replay
from logkeep.model.cache import cache_dir
from tests.integration.kafka.replay.conftest import Archived
from tests.support.kafka.replay_into_topics import committed, expected, nothing
from tests.support.servers.older_kafka import kraft_39
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-replay")


@pytest.fixture
def older(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with kraft_39(tmp_path / "broker", cache_dir(os.environ, Path.home())) as running:
        yield running


def test_offsets_are_kept_on_kafka_3_9(shaky: Shaky, older: EmbeddedKafka, logs: Archived) -> None:
    target = replace(logs.target, bootstrap=older.bootstrap)
    unit = target.unit("bumpy", "bumpy", Offsets.PRESERVE, prove=True)
    (result,) = replay(unit, nothing).logs
    assert (result.outcome, result.detail) == (ReplayOutcome.DONE, "")
    assert result.holes >= 16
    assert result.proof is not None
    assert result.proof.good, result.proof
    seen, bounds = committed(older.bootstrap, "bumpy", 0)
    assert seen == expected(shaky.kafka.bootstrap, logs.archive, logs.backup_id, "bumpy", 0)
    assert bounds == (unit.logs[0].first.start, unit.logs[0].first.end)

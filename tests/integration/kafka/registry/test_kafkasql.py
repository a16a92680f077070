"""Archive, lose, restore, start: an Apicurio that keeps its schemas in topics, before and after (`make registry`)."""

import os
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.registry.capture import capture
from logkeep.kafka.registry.restore_plan import differences
from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.registry_steps import fill, register, settings_of
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.servers.apicurio import Apicurio

pytestmark = pytest.mark.registry
TOPICS = ("reg-journal", "reg-snapshots", "reg-events")


def test_archive_lose_restore_start(tmp_path: Path) -> None:
    repo = Filled(tmp_path / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    with EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home())) as kafka:
        topics = Matrix(kafka)
        for topic in TOPICS:
            topics.create(topic, config={"retention.ms": "-1", "retention.bytes": "-1"})
        target = ("--bootstrap-servers", kafka.bootstrap, "--source", "prod")
        with Apicurio(tmp_path / "first", bootstrap=kafka.bootstrap, topics="reg") as first:
            fill(first.url)
            before = capture(settings_of(first.url)).registry
            repo.run("kafka", "backup", *target, "--registry", first.url)
        topics.delete(*TOPICS)
        # A registry has a new group at each start; that of the stopped one may still count as active.
        parts = ("--what", "data,configs", "-y", "--confirm-cluster", kafka.cluster)
        repo.run("kafka", "restore", "latest", *target, *parts)
        with Apicurio(tmp_path / "second", bootstrap=kafka.bootstrap, topics="reg") as second:
            done = repo.json(
                "kafka", "schemas", "restore", "latest", "--registry", second.url, "-y", "--source", "prod"
            )
            assert (done["way"], done["verdict"]) == ("nothing", "proven")
            after = capture(settings_of(second.url)).registry
            assert differences(before, after) == ()
            assert after.definitions == before.definitions
            new = register(second.url, "new-value", '{"type":"record","name":"New","fields":[]}')
            assert new > before.highest_id

"""Exports into a bucket of a real S3 server, and upkeep, killed after every store call and run again: equal bytes.

`make test` takes a few of the points, `make soak` all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.kafka.datasets.format_table import FORMAT_NAMES
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import open_store
from tests.crash.forker import End, Forker
from tests.crash.seeds import seeded_part
from tests.crash.victims import KILLED_AFTER, NO_FAULT
from tests.support.cli.in_process import Here
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.whole_backups import new_place
from tests.support.servers.s3 import ENVIRONMENT, S3Server

pytestmark = pytest.mark.xdist_group("seaweed-faults")


@dataclass(frozen=True)
class Export:
    """Two backups of two partitions, of which the second is exported into what the first has left."""

    source: SourceRef
    backups: tuple[int, int]
    form: str

    def run(
        self, server: S3Server, forks: Forker, place: str, backup: int, call: int = 0, *, rewrite: bool = False
    ) -> End:
        return forks.run(
            "tests.crash.victims:export_dataset",
            url=self.url(server, place),
            repository=self.source.store.url,
            repository_id=self.source.repository,
            backup=str(backup),
            form=self.form,
            rewrite=rewrite,
            fault=KILLED_AFTER if call else NO_FAULT,
            call=call,
            environment=ENVIRONMENT,
        )

    def keep_up(self, server: S3Server, forks: Forker, place: str, verb: str, call: int = 0) -> End:
        return forks.run(
            "tests.crash.victims:keep_up_dataset",
            url=self.url(server, place),
            verb=verb,
            fault=KILLED_AFTER if call else NO_FAULT,
            call=call,
            environment=ENVIRONMENT,
        )

    def url(self, server: S3Server, place: str) -> str:
        return server.url("crash", f"{self.form}-{place}")

    def files(self, server: S3Server, place: str) -> dict[str, bytes]:
        """What other tools read."""
        store = open_store(self.url(server, place))
        names = [info.name for info in store.list("")]
        return {name: store.get(name, 1 << 20) for name in names if not name.startswith(f"{FOLDER}/")}


@pytest.fixture(params=FORMAT_NAMES)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Export:
    source = CompactedSource(new_place(tmp_path / "repository"), partitions=2, groups={"g": 2})
    backups = []
    for values in ((b"1", b"2"), (b"3", b"4", b"5")):
        source.write([(b"k" + value, value) for value in values])
        source.write([(b"other", value) for value in values], partition=1)
        backups.append(source.back_up())
    return Export(source.place, (backups[0], backups[1]), request.param)


def _killed(export: Export, server: S3Server, forks: Forker, points: Iterable[int] | None) -> tuple[int, int]:
    """At these store calls of both exports together; None: at all of them. Tells how many, and how many there are.

    A listing that its caller leaves early has no end after which a process could be killed.
    """
    begun = export.run(server, forks, "whole", export.backups[0]).result["calls"]
    calls = begun + export.run(server, forks, "whole", export.backups[1]).result["calls"]
    whole, done = export.files(server, "whole"), 0
    assert len(whole) > 4
    for point in points or range(1, calls + 1):
        place, first = str(point), point <= begun
        if not first:
            export.run(server, forks, place, export.backups[0])
        backup, call = export.backups[not first], point if first else point - begun
        done += export.run(server, forks, place, backup, call).killed
        for again in export.backups[not first :]:
            export.run(server, forks, place, again)
        assert export.files(server, place) == whole, f"killed at {point} of {calls}"
    return done, calls


def test_at_a_few_store_calls(export: Export, seaweed_server: S3Server, forks: Forker) -> None:
    points = seeded_part(f"{export.form} on S3", list(range(1, 20)), 10)
    _killed(export, seaweed_server, forks, points)


def _rewritten(export: Export, server: S3Server, forks: Forker, points: Iterable[int] | None) -> tuple[int, int]:
    """A topic is written anew and exchanged; killed at these calls, or at all, and continued by a plain run if old
    objects were touched, else run again."""
    newest = export.backups[1]

    def begun(place: str) -> str:
        for backup in export.backups:
            export.run(server, forks, place, backup)
        return place

    calls = export.run(server, forks, begun("rewritten"), newest, rewrite=True).result["calls"]
    old, whole, done = export.files(server, begun("old")), export.files(server, "rewritten"), 0
    assert len(whole) < len(old)
    for point in points or range(1, calls + 1):
        place = begun(f"rewrite-{point}")
        done += export.run(server, forks, place, newest, point, rewrite=True).killed
        export.run(server, forks, place, newest)
        if export.files(server, place) == old:
            export.run(server, forks, place, newest, rewrite=True)
        assert export.files(server, place) == whole, f"killed at {point} of {calls}"
        left = [info.name for info in open_store(export.url(server, place)).list(f"{FOLDER}/rewrite/")]
        assert left == [], f"killed at {point} of {calls}"
    return done, calls


def test_a_rewrite_at_a_few_store_calls(export: Export, seaweed_server: S3Server, forks: Forker) -> None:
    points = seeded_part(f"rewrite of {export.form} on S3", list(range(30, 60)), 8)
    assert _rewritten(export, seaweed_server, forks, points)[0] > 0


def test_a_topic_is_written_anew_by_the_command(
    export: Export, seaweed_server: S3Server, forks: Forker, tmp_path: Path
) -> None:
    """With the wrappers that a command puts around a store."""
    here, place = Here(tmp_path, ENVIRONMENT), export.url(seaweed_server, "command")
    for backup in export.backups:
        export.run(seaweed_server, forks, "command", backup)
    words = ("--repo", export.source.store.url, "--format", export.form, "--to", place)
    old = export.files(seaweed_server, "command")
    done = here.json("kafka", "export", "latest", *words, "--rewrite", "state")
    assert (done["records"], done["gaps"], done["findings"]) == (10, [], [])
    assert len(export.files(seaweed_server, "command")) < len(old)
    assert here.json("kafka", "dataset", "verify", place)["findings"] == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_rewrite_at_every_store_call(export: Export, seaweed_server: S3Server, forks: Forker) -> None:
    killed, calls = _rewritten(export, seaweed_server, forks, None)
    print(f"{export.form} on S3: --rewrite killed after {killed} of {calls} store calls, every time equal bytes")
    assert killed > calls // 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("verb", ["prune", "reindex"])
def test_upkeep_at_every_store_call(export: Export, seaweed_server: S3Server, forks: Forker, verb: str) -> None:
    """All indexes are gone before they are written again; each partition is pruned to its last segment."""
    if verb == "reindex" and export.form != "kafka-backup-v1":
        pytest.skip("the format has no index")

    def made(place: str) -> str:
        for backup in export.backups:
            export.run(seaweed_server, forks, place, backup)
        if verb == "reindex":
            store = open_store(export.url(seaweed_server, place))
            for info in [each for each in store.list("") if "index" in each.name]:
                store.delete(info.name)
        return place

    done = export.keep_up(seaweed_server, forks, made(f"{verb}-whole"), verb)
    assert done.result["files"] > 2
    whole, calls, killed = export.files(seaweed_server, f"{verb}-whole"), done.result["calls"], 0
    for point in range(1, calls + 1):
        place = made(f"{verb}-{point}")
        killed += export.keep_up(seaweed_server, forks, place, verb, point).killed
        export.keep_up(seaweed_server, forks, place, verb)
        assert export.files(seaweed_server, place) == whole, f"killed at {point} of {calls}"
    print(f"{export.form} on S3: {verb} killed after {killed} of {calls} store calls, every time equal bytes")
    assert killed > calls // 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_at_every_store_call(export: Export, seaweed_server: S3Server, forks: Forker) -> None:
    killed, calls = _killed(export, seaweed_server, forks, None)
    print(f"{export.form} on S3: killed after {killed} of {calls} store calls, every time equal bytes")
    assert killed > calls // 2

"""A broker dies while it is written to: what is salvaged from its disk is what it serves when it comes back."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batches import WalkEnd, walk
from logkeep.kafka.client.topology import TopicPartition as Log
from logkeep.model.cache import cache_dir
from logkeep.model.segments import Proof
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import read_chain
from logkeep.store.local.store import LocalStore
from tests.integration.kafka.salvage.conftest import Dead, served_by
from tests.support.kafka.broker_disks import flip
from tests.support.kafka.salvage_steps import codes, salvaged, told
from tests.support.kafka.topic_matrix import BROKER
from tests.support.kafka.whole_backups import Archive, new_place

pytestmark = pytest.mark.xdist_group("kafka-salvage")


def _same_as_served(archive: Archive, backup_id: int, dead: Dead) -> None:
    for log, count in dead.topics.items():
        for partition in range(count):
            where = Log(log, partition)
            cut = archive.cut(backup_id, *where)
            assert (cut.start, cut.end) == dead.served.ends[where], where
            assert archive.batches(backup_id, *where) == dead.served.batches[where], where


def _tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(p.relative_to(root)): (p.stat().st_mtime_ns, p.stat().st_mode, p.read_bytes() if p.is_file() else b"")
        for p in sorted(root.rglob("*"))
    }


def test_everything_that_the_broker_serves_is_salvaged(dead: Dead, tmp_path: Path) -> None:
    before = _tree(dead.disk)
    archive, done = salvaged(new_place(tmp_path / "repository"), [dead.disk], segment_bytes=400_000)
    assert done.entry is not None
    _same_as_served(archive, done.entry.id, dead)
    archive.check(done.entry.id)
    assert _tree(dead.disk) == before
    assert done.gaps == ()
    assert not codes(done) & {"unproven-tail", "lost-tail", "partition-missing", "missing-offsets"}


def test_groups_and_topics_are_those_of_the_broker(dead: Dead, tmp_path: Path) -> None:
    archive, done = salvaged(new_place(tmp_path / "repository"), [dead.disk])
    assert done.entry is not None
    record = archive.record(done.entry.id)
    found = {
        g.name: {(c.topic, c.partition): (c.committed, c.metadata.rstrip("\0")) for c in g.commits}
        for g in record.groups
        if g.commits
    }
    # librdkafka writes a NUL behind the metadata that it is given, and reads up to it
    assert found == {name: commits for name, commits in dead.served.groups.items() if commits}
    assert found["mover"] == {("idle", 0): (11, "")}
    (far,) = (g for g in record.groups if g.name == "far")
    assert {c.offset for c in far.commits} == {1000}
    assert {t.name: t.partitions for t in record.topics} == dead.topics
    (idle,) = (t for t in record.topics if t.name == "idle")
    assert (idle.replication_factor, idle.configs) == (1, {"retention.ms": "86400000"})
    assert {t.topic for t in record.open_transactions} == {"transactions"}
    (stable,) = (r for r in record.logs if r.topic == "transactions")
    assert stable.last_stable == min(t.first_offset for t in record.open_transactions) < stable.end


def test_the_metadata_log_says_what_the_cluster_said(dead: Dead, tmp_path: Path) -> None:
    """From a snapshot and the records behind it: topics, configs, ACLs and quotas of the online backup."""
    online = Archive("nobody:9092", open_repository(LocalStore(dead.repository)).place("prod"))
    (first,) = read_chain(online.place).completed
    archive, done = salvaged(new_place(tmp_path / "repository"), [dead.disk])
    assert done.entry is not None
    said, found = online.record(first.id), archive.record(done.entry.id)
    own = [msgspec.structs.replace(t, inherited={}) for t in said.topics]  # what brokers were given is in their files
    assert {t.name: t for t in own}.items() <= {t.name: t for t in found.topics}.items()
    assert (found.acls, found.quotas, found.cluster_id) == (said.acls, said.quotas, said.cluster_id)
    assert len(found.acls or ()) == len(found.quotas) == 1
    snapshots = [p.name for p in (dead.disk / "__cluster_metadata-0").glob("*.checkpoint")]
    assert max(snapshots)[:20] > "0" * 20


def test_a_salvage_continues_the_backups_of_the_cluster(dead: Dead, tmp_path: Path) -> None:
    shutil.copytree(dead.repository, tmp_path / "repository")
    place = open_repository(LocalStore(tmp_path / "repository")).place("prod")
    archive, done = salvaged(place, [dead.disk])
    assert done.entry is not None
    _same_as_served(archive, done.entry.id, dead)
    archive.check(done.entry.id)
    copied = {
        Log(r.wanted.topic, r.wanted.partition): (r.wanted.lo, r.wanted.hi)
        for unit in done.plan.units
        for r in unit.ranges
    }
    assert copied.keys() == {Log("busy", 0), Log("busy", 1), Log("transactions", 0)}
    for log, (lo, hi) in copied.items():
        assert (lo, hi) == (dead.first_ends.get(log, 0), dead.served.ends[log][1])
    again = salvaged(place, [dead.disk])[1]
    assert again.entry is not None
    assert (again.plan.units, again.entry.summary.new_bytes) == ((), 0)


def test_what_a_recovering_broker_completes_or_drops(dead: Dead, tmp_path: Path) -> None:
    """Files that a cleaner and a deletion left, a tail cut off, a tail of zeros: as the broker, so the salvage."""
    kafka = EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home()), properties=BROKER)
    kafka.port, kafka.controller_port, kafka.bootstrap = (
        dead.kafka.port,
        dead.kafka.controller_port,
        dead.kafka.bootstrap,
    )
    disk = tmp_path / "broker" / "data"
    shutil.copytree(dead.disk, disk)
    _leave_a_finished_clean(disk / "compacted-0")
    _leave_unfinished_work(disk / "codecs-0")
    _cut_the_tail(disk / "busy-0")
    _zeros_behind(disk / "busy-1")
    archive, done = salvaged(new_place(tmp_path / "repository"), [disk])
    assert done.entry is not None
    with kafka:
        served = served_by(kafka, dead.topics)
    _same_as_served(archive, done.entry.id, replace(dead, served=served))
    assert served.batches[Log("compacted", 0)] != dead.served.batches[Log("compacted", 0)]
    assert served.ends[Log("busy", 0)][1] < dead.served.ends[Log("busy", 0)][1]
    assert codes(done) >= {"file-left-out", "damaged", "zero-tail"}
    assert {"directory-left-out"} == codes(done) & {"directory-left-out", "partition-missing"}


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def _leave_a_finished_clean(directory: Path) -> None:
    """A segment without its second half, finished and not yet swapped in; beside it the segments it replaces."""
    first = _segments(directory)[0]
    batches = walk(first.read_bytes()).batches
    kept = [i for i in range(len(batches)) if i % 2 == 0 or i == len(batches) - 1]
    data = first.read_bytes()
    ends = (batches.positions + batches.sizes).tolist()
    pieces = [data[at : ends[i]] for i, at in enumerate(batches.positions.tolist()) if i in kept]
    assert len(pieces) < len(batches)
    first.with_name(f"{first.name}.swap").write_bytes(b"".join(pieces))


def _leave_unfinished_work(directory: Path) -> None:
    (first,) = _segments(directory)
    first.with_name(f"{first.name}.cleaned").write_bytes(first.read_bytes()[:5000])
    first.with_name(f"{5:020d}.log.deleted").write_bytes(first.read_bytes())
    first.with_name(f"{7:020d}.log.swap").write_bytes(first.read_bytes())
    shutil.copytree(directory, directory.with_name(f"gone-0.{'a' * 32}-delete"))


def _cut_the_tail(directory: Path) -> None:
    """Of the last segment that has a batch: the broker may have died when it had just begun another one."""
    while not len(batches := walk(_segments(directory)[-1].read_bytes()).batches):
        for path in directory.glob(f"{_segments(directory)[-1].stem}.*"):
            path.unlink()
    os.truncate(_segments(directory)[-1], int(batches.positions[-1]) + 70)


def _zeros_behind(directory: Path) -> None:
    with _segments(directory)[-1].open("ab") as file:
        file.write(bytes(300_000))


def _is_torn(directory: Path) -> bool:
    """Whether the broker was killed in the middle of a batch: the log ends with a part of it."""
    return walk(_segments(directory)[-1].read_bytes()).stop is not WalkEnd.END


def test_two_damaged_copies_make_one_whole(dead: Dead, tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for node, root in enumerate(roots, 1):
        shutil.copytree(dead.disk, root)
        properties = root / "meta.properties"
        properties.write_text(properties.read_text().replace("node.id=1", f"node.id={node}"))
    flip(_segments(roots[0] / "codecs-2")[0], 100)
    flip(_segments(roots[0] / "busy-0")[0], 5000)
    flip(_segments(roots[1] / "codecs-3")[0], 100)
    archive, done = salvaged(new_place(tmp_path / "repository"), roots)
    assert done.entry is not None
    _same_as_served(archive, done.entry.id, dead)
    assert done.gaps == ()
    torn = {log for log in ("busy-0", "busy-1") if _is_torn(dead.disk / log)}
    assert {t.partition(":")[0] for t in told(done, "damaged")} == {"codecs-2", "busy-0"} | torn
    assert [t.partition(":")[0] for t in told(done, "copy-damaged")] == ["codecs-3"]
    assert not told(done, "copies-differ")


def test_without_a_metadata_log_the_tail_is_unproven(dead: Dead, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    shutil.copytree(dead.disk, disk)
    shutil.rmtree(disk / "__cluster_metadata-0")
    archive, done = salvaged(new_place(tmp_path / "repository"), [disk])
    assert done.entry is not None
    _same_as_served(archive, done.entry.id, dead)
    assert told(done, "metadata-missing")
    unproven = {t.partition(":")[0] for t in told(done, "unproven-tail")}
    assert "busy-0" in unproven
    for log, rows in archive.segments(done.entry.id).items():
        above = [s for s in rows if s.proof is Proof.UNPROVEN]
        assert bool(above) == (f"{log.name}-{log.partition}" in unproven)
        assert rows[len(rows) - len(above) :] == above


def test_a_running_broker_is_left_alone(dead: Dead) -> None:
    assert "a running broker holds it" in dead.lock_refused
    assert "kafka-server-stop.sh" in dead.lock_refused

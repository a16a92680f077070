"""How long does `logkeep info` take on a large backup? Made-up rows in a real repository, asked by the real command.

    python -m benchmarks.kafka_info [--segments 1000000] [--logs 10000]

Writes the documents of one backup (no data: `info` reads none), then runs the command as a process of its own.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.repository_parts import made_up
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import ROLE, ClusterRecord, CommitRecord, GroupRecord, PartitionRecord, TopicRecord
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import begin
from logkeep.repository.backups.content import put_part
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BackupAction, ObjectRef, Summary
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal, seal_of
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.write_session import writing
from logkeep.repository.parts import SegmentTable, ranges, total
from logkeep.store.local.store import LocalStore

_MOMENT = "2026-11-15T10:30:00+00:00"
_TRAITS = LogTraits(1_000_000, ("none", "zstd"))


def record_of(place: SourceRef, backup_id: BackupId, cuts: list[LogCut]) -> ClusterRecord:
    """Ten partitions to a topic, and ten groups that read everything."""
    names: dict[str, list[LogName]] = {}
    for cut in cuts:
        names.setdefault(cut.log.name, []).append(cut.log)
    commits = tuple(CommitRecord(c.log.name, c.log.partition, c.end - 5, c.end - 5, -1, "") for c in cuts)
    return ClusterRecord(
        repository=place.repository, source=place.source, id=backup_id, cluster_id="made-up",
        topics=tuple(TopicRecord(name, logs[0].history, False, len(logs), 3, {}) for name, logs in names.items()),
        logs=tuple(
            PartitionRecord(c.log.name, c.log.partition, c.log.history, c.start, c.end, c.end, 1, traits=_TRAITS)
            for c in cuts
        ),
        open_transactions=(), acls=None, quotas=(),
        groups=tuple(GroupRecord(f"group-{n}", "classic", "Empty", "consumer", commits) for n in range(10)),
    )  # fmt: skip


def fill(place: SourceRef, table: SegmentTable) -> None:
    """One completed backup whose objects are not there: nothing here reads them."""
    cuts = [LogCut(log, some[0].start, some[-1].end) for log, some in ranges(table).items()]
    with writing(place, "backup", utc_now, random_token) as session:
        source = ensure_source(place, "kafka", {"cluster_id": "made-up"}, utc_now())
        ongoing = begin(session, source)
        part = put_part(place, table, random_token())
        record = put_attachment(place, ongoing.id, ROLE, record_of(place, ongoing.id, cuts), random_token())
        manifest = Manifest(
            repository=place.repository, source=place.source, id=ongoing.id, run=ongoing.run, kind="kafka",
            identity={"cluster_id": "made-up"}, started=_MOMENT, finished=_MOMENT, base=None,
            cut=tuple(cuts), parts=(part,), attachments=(record,),
        )  # fmt: skip
        data, token = seal(manifest), random_token()
        place.store.put_new(layout.manifest(place.source, ongoing.id, token), data)
        size = total(table, "stored_bytes")
        summary = Summary(
            started=_MOMENT, logs=len(cuts), segments=len(table), records=total(table, "records"),
            stored_bytes=size, new_bytes=size, warnings=0, tags=(), group=(),
        )  # fmt: skip
        session.commit(BackupAction(ongoing.id, ObjectRef(token, len(data), seal_of(data)), summary))


def ask(url: str, *more: str) -> tuple[float, int]:
    """Seconds, and bytes of the answer."""
    began = time.monotonic()
    command = [sys.executable, "-m", "logkeep.cli", "info", "latest", "-r", url, *more]
    done = subprocess.run(command, capture_output=True, check=True, env=dict(os.environ))
    return time.monotonic() - began, len(done.stdout)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--segments", type=int, default=1_000_000)
    arguments.add_argument("--logs", type=int, default=10_000)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        store = LocalStore(Path(directory) / "repository")
        store.create()
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        place = create_repository(store, facts, utc_now(), random_token).place("prod")
        fill(place, made_up(asked.segments, asked.logs))
        print(f"{asked.segments:,} segments, {asked.logs:,} logs\n")
        print("| question | seconds | answer |\n|---|---|---|")
        for more in ((), ("--topic", "orders.region-00007.events"), ("--all",), ("--json",)):
            seconds, size = ask(store.url, *more)
            print(f"| info latest {' '.join(more)} | {seconds:.1f} | {size:,} bytes |")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"\npeak memory of the command: {peak / 1024:.0f} MiB")


if __name__ == "__main__":
    main()

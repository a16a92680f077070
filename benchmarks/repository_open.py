"""How fast is a large repository opened? `python -m benchmarks.repository_open`

A source with 10,000 commits (10,000 live backups) and one whose manifest names 1,000,000 segments of 10,000 logs, both
in a directory on this machine. Prints a table for docs/benchmarks.md: best of 5, and the ratio to the same command on
an empty repository, because machines differ and ratios do not.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from logkeep.model.ids import BackupId
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.content import PartReader, put_part, rows_of, served_parts
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import BackupAction, CheckpointAction, ObjectRef, Summary
from logkeep.repository.chain.commits import (
    CHECKPOINT_EVERY,
    SourceRef,
    append,
    put_checkpoint,
    read_chain,
    read_whole_chain,
)
from logkeep.repository.chain.documents import seal, seal_of
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.parts import SegmentTable
from logkeep.store.local.store import LocalStore

COMMITS, LOGS, SEGMENTS_PER_LOG = 10_000, 10_000, 100
PARTS = 8


def new_place(root: Path) -> SourceRef:
    store = LocalStore(root)
    store.create()
    repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
    place = repository.place("prod")
    ensure_source(place, "benchmark", {}, utc_now())
    return place


def many_commits(place: SourceRef) -> None:
    folded, summary = Folded(), Summary(started="", logs=1, segments=1, records=1, stored_bytes=1, new_bytes=1)
    for number in range(1, COMMITS + 1):
        if folded.generation % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            pinned = CheckpointAction(put_checkpoint(place, folded, random_token()), "benchmark")
            folded = append(place, folded, pinned, run="b", nonce=random_token(), now=utc_now())
        action = BackupAction(number, ObjectRef(random_token(), 1, "0" * 64), summary)
        folded = append(place, folded, action, run="b", nonce=random_token(), now=utc_now())


def many_segments(place: SourceRef) -> None:
    tokens = (f"{n:016x}" for n in count(1))
    logs = [LogName(Collection.TOPICS, f"topic-{n // 100}", "AAAAAAAAAAAAAAAAAAAAAA", n % 100) for n in range(LOGS)]
    digest = hashlib.sha256(b"").hexdigest()
    refs = []
    for part in range(PARTS):
        mine = range(part, SEGMENTS_PER_LOG, PARTS)
        rows = [
            Segment(
                log=log, start=s * 1000, end=s * 1000 + 1000, first=s * 1000, token=next(tokens), records=1000,
                stored_bytes=1 << 20, plain_bytes=1 << 20, base_time_ms=0, max_time_ms=1, sha256=digest,
                plain_sha256=digest,
            )
            for log in logs for s in mine
        ]  # fmt: skip
        refs.append(put_part(place, SegmentTable.from_segments(rows), random_token()))
    manifest = Manifest(
        repository=place.repository, source=place.source, id=1, run="b", kind="benchmark", identity={}, started="",
        finished="", base=None, cut=tuple(LogCut(log, 0, SEGMENTS_PER_LOG * 1000) for log in logs), parts=tuple(refs),
    )  # fmt: skip
    data, token = seal(manifest), random_token()
    place.store.put_new(layout.manifest(place.source, BackupId(1), token), data)
    summary = Summary(
        started="2026-11-15T00:00:00.000Z", logs=LOGS, segments=LOGS * SEGMENTS_PER_LOG, records=1, stored_bytes=1,
        new_bytes=1,
    )  # fmt: skip
    action = BackupAction(1, ObjectRef(token, len(data), seal_of(data)), summary)
    append(place, Folded(), action, run="b", nonce=random_token(), now=utc_now())


def best_of(action: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return min(taken)


def command(root: Path, *arguments: str) -> Callable[[], object]:
    environ = {**os.environ, "LOGKEEP_REPO": f"file://{root}"}
    line = [sys.executable, "-m", "logkeep.cli", *arguments]
    return lambda: subprocess.run(line, env=environ, check=True, stdout=subprocess.DEVNULL)


def rows(place: SourceRef) -> int:
    folded = read_chain(place)
    manifest = read_manifest(place, folded.completed[-1])
    return len(rows_of(PartReader(place), manifest, served_parts(manifest, folded)))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        _, commits, segments = (new_place(Path(scratch) / name) for name in ("empty", "commits", "segments"))
        many_commits(commits)
        many_segments(segments)
        roots = {name: Path(scratch) / name for name in ("empty", "commits", "segments")}
        base = best_of(command(roots["empty"], "list"))
        lines = [
            ("`logkeep list`, empty repository", base),
            (f"`logkeep list`, {COMMITS:,} commits, {COMMITS:,} backups", best_of(command(roots["commits"], "list"))),
            ("the same chain opened in process, from its checkpoint", best_of(lambda: read_chain(commits))),
            ("the same chain without checkpoints, every commit", best_of(lambda: read_whole_chain(commits), 2)),
            (f"`logkeep list`, {LOGS * SEGMENTS_PER_LOG:,} segments", best_of(command(roots["segments"], "list"))),
            ("all segment rows of it read and checked, in process", best_of(lambda: rows(segments), 3)),
            ("`logkeep info latest` of it", best_of(command(roots["segments"], "info", "latest"), 3)),
        ]
        assert rows(segments) == LOGS * SEGMENTS_PER_LOG
    print("| what | seconds | ratio to an empty `list` |\n|---|---|---|")
    for what, seconds in lines:
        print(f"| {what} | {seconds:.2f} | {seconds / base:.1f} |")


if __name__ == "__main__":
    main()

"""A cut as a backup in a repository, through the same functions that archive partitions of an application."""

from pathlib import Path

from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.partition_files import copy_log, copy_snapshot
from logkeep.checkpoint.archive.record import ROLE, ApplicationRecord
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.steps import run
from logkeep.model.ids import BackupId
from logkeep.model.segments import Segment
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from tests.support.certificate.cuts import NONCE, Cut, write_snapshot
from tests.support.cli.filled_repository import empty
from tests.support.machine_runs import APPLICATION


def archived(cut: Cut, home: Path) -> SourceRef:
    """The backup of a cut, in the repository below `home`, as source `shop`."""
    place = empty(home).place("shop")
    with writing(place, "backup", utc_now, random_token) as session:
        identity = {"application_id": APPLICATION.hex(), "partitions": str(len(cut.partitions))}
        facts = ensure_source(place, "application", identity, utc_now())
        ongoing = begin(session, facts, wanted=BackupId(cut.checkpoint))
        cuts, segments = list[LogCut](), list[Segment]()
        for number, part in enumerate(cut.partitions):
            log, end = log_of("shop", 1, number), part.archived.end
            data = part.encoded()
            segments += run(copy_log(place, log, part.archived.start, end, iter([data]), random_token), lambda _: False)
            cuts.append(LogCut(log, part.archived.start, end))
            if part.snapshot is not None:
                path = home / f"snapshot-{number}"
                write_snapshot(path, part.snapshot, part.snapshot.position)
                states = snapshots_of("shop", 1, number)
                with path.open("rb") as file:
                    copying = copy_snapshot(place, states, part.snapshot.position, 0, file, random_token)
                    segments.append(run(copying, lambda _: False))
                cuts.append(LogCut(states, part.snapshot.position, part.snapshot.position + 1))
        record = ApplicationRecord(
            repository=place.repository,
            source="shop",
            id=cut.checkpoint,
            application=APPLICATION.hex(),
            name="shop",
            partitions=len(cut.partitions),
            history=1,
            nonce=NONCE,
            copies=tuple(_copy(cut, number) for number in range(len(cut.partitions))),
        )
        attachment = put_attachment(place, ongoing.id, ROLE, record, random_token())
        ongoing.complete(FinishedRun(cut=sorted(cuts, key=lambda c: c.log), new=segments, attachments=[attachment]))
    return place


def _copy(cut: Cut, number: int) -> PartitionCopy:
    claim = cut.partitions[number].claim
    return PartitionCopy(
        partition=number,
        term=1,
        history=1,
        nonce=NONCE,
        outcome="completed",
        position=claim.position,
        cut_end=claim.cut_end,
        log_start=claim.log_start,
        snapshot_position=claim.snapshot_position,
        state_digest=claim.state_digest,
        external=claim.external,
        checkpoints=tuple((found, at, at + 1) for found, at in claim.checkpoints),
    )

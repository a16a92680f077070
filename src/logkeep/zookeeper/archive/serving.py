"""What the record of a backup means today: read through repairs first, then through merges."""

from dataclasses import replace

from logkeep.repository.chain import SourceRef
from logkeep.repository.content import PartReader, rows_of, served_parts
from logkeep.repository.fold import Folded
from logkeep.repository.manifest import Manifest
from logkeep.zookeeper.archive.pieces import ServedRecord, settled
from logkeep.zookeeper.archive.record import EnsembleRecord
from logkeep.zookeeper.archive.served import as_served, tokens_of


def served_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> ServedRecord:
    """With the rows of its objects. Raises Damaged."""
    rows = list(rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())
    told = as_served(record, rows) if was_mended(manifest, folded) else record
    return replace(settled(told, rows, place.source), mended=len(tokens_of(record) - tokens_of(told)))


def mended_record(place: SourceRef, folded: Folded, manifest: Manifest, record: EnsembleRecord) -> EnsembleRecord:
    """Read through repairs alone: how far it reaches. Without any, no part is read."""
    if not was_mended(manifest, folded):
        return record
    return as_served(record, rows_of(PartReader(place), manifest, served_parts(manifest, folded)).to_segments())


def was_mended(manifest: Manifest, folded: Folded) -> bool:
    """Whether other parts than its own serve a backup, and a repair may be the reason."""
    served = served_parts(manifest, folded)
    return any(one.keep_old for one in folded.replacements) and any(part not in served for part in manifest.parts)

"""What a backup of a compacted topic restores to, read from the archive alone."""

from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.transactions import Settling
from logkeep.kafka.logs.archived import stretches
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.record.backup_view import view_backup
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from tests.support.kafka.cleaned_topics import TICK


def archived_table(place: SourceRef, entry: BackupEntry) -> dict[bytes, bytes]:
    """The latest value of every key that is not deleted, over all logs of the backup, without ticks."""
    view, table = view_backup(place, entry), dict[bytes, bytes]()
    for cut in view.manifest.cut:
        segments = [s for s in view.rows.to_segments() if s.log == cut.log]
        settling = Settling()
        for stretch in stretches(place, segments, cut.start, cut.end):
            settling.take(stretch.buffer, stretch.batches)
        buried = read_buried(place, [b.object for b in view.burials.get(cut.log, ())])
        wanted = View(cut.start, cut.end, settling.settled(), buried=buried)
        for records in visible_records(stretches(place, segments, cut.start, cut.end), wanted):
            for row in range(len(records)):
                key, value = records.key(row) or b"", records.value(row)
                table.pop(key, None)
                if value is not None and not key.startswith(TICK):
                    table[key] = value
    return table

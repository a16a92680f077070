"""What a repository keeps of restores: what was decided, under which producers it was written, how it ended.

- `documents`: the sealed documents and their rows
- `storing`: begin a restore; plan, map, abort
- `attempts`: producers, and who resumed it
- `numbered`: documents of which there are several
- `receipts`: the results
- `listing`: which restores there are, by one listing
- `state_dir`: the same in a local directory, for repositories that may only be read

Garbage collection knows none of these names and leaves all of it alone.
"""

from logkeep.repository.restores.attempts import (
    newest_producers,
    note_resumed,
    owner_of,
    put_producers,
    read_producers,
    times_resumed,
    topic_ids,
)
from logkeep.repository.restores.documents import (
    AbortedDocument,
    ProducerRow,
    ProducersDocument,
    ReceiptDocument,
    RestoredGroup,
    RestoredPartition,
    RestorePlanDocument,
    RestoreTargetRef,
    RestoreVerdict,
)
from logkeep.repository.restores.listing import RestoreRow, RestoreState, last_restores, list_restores
from logkeep.repository.restores.receipts import (
    FIRST,
    newest_first,
    newest_receipt,
    own_receipt,
    put_receipt,
    read_receipt,
    read_receipts,
)
from logkeep.repository.restores.state_dir import state_place
from logkeep.repository.restores.storing import (
    NewRestore,
    begin_restore,
    plan_body,
    put_aborted,
    put_map,
    read_aborted,
    read_map,
    read_plan,
)

__all__ = [
    "FIRST",
    "AbortedDocument",
    "NewRestore",
    "ProducerRow",
    "ProducersDocument",
    "ReceiptDocument",
    "RestorePlanDocument",
    "RestoreRow",
    "RestoreState",
    "RestoreTargetRef",
    "RestoreVerdict",
    "RestoredGroup",
    "RestoredPartition",
    "begin_restore",
    "last_restores",
    "list_restores",
    "newest_first",
    "newest_producers",
    "newest_receipt",
    "note_resumed",
    "own_receipt",
    "owner_of",
    "plan_body",
    "put_aborted",
    "put_map",
    "put_producers",
    "put_receipt",
    "read_aborted",
    "read_map",
    "read_plan",
    "read_producers",
    "read_receipt",
    "read_receipts",
    "state_place",
    "times_resumed",
    "topic_ids",
]

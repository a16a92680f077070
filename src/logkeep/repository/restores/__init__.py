"""Documents of restores: plans, producers, resumes, receipts, aborts.

- `documents`: the sealed documents and their rows
- `stored`: one restore, from its plan to its receipt: the interface for every kind of restore
- `plan_store`: plans, maps, aborts; also in a local directory, for read-only repositories
- `attempts`: producers and resumes
- `document_numbers`: numbered documents
- `receipts`: the results
- `listing`: all restores, by one listing

Garbage collection never removes any of them.
"""

from logkeep.repository.restores.attempts import (
    newest_producers,
    note_resumed,
    owner_of,
    owners_of,
    put_producers,
    read_producers,
    times_resumed,
    topic_ids,
)
from logkeep.repository.restores.documents import (
    WITH_BURIED,
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
from logkeep.repository.restores.plan_store import (
    NewRestore,
    begin_restore,
    plan_body,
    put_aborted,
    put_map,
    read_aborted,
    read_map,
    read_plan,
    state_place,
)
from logkeep.repository.restores.receipts import (
    FIRST,
    newest_first,
    newest_receipt,
    own_receipt,
    put_receipt,
    read_receipts,
)

__all__ = [
    "FIRST",
    "WITH_BURIED",
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
    "owners_of",
    "plan_body",
    "put_aborted",
    "put_map",
    "put_producers",
    "put_receipt",
    "read_aborted",
    "read_map",
    "read_plan",
    "read_producers",
    "read_receipts",
    "state_place",
    "times_resumed",
    "topic_ids",
]

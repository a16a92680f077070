"""The dataset that an argument names."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import opened_store
from logkeep.errors import UsageError
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.datasets.bucket_rewrite import exchanged_now, settle
from logkeep.kafka.datasets.dataset_lock import locked
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_exchange import ExchangeState, read_journal
from logkeep.store.access import local_root, place_exists


def existing_dataset(run: Run, url: str) -> ExistingDataset:
    """Raises UsageError if there is none, and Locked while its topics are being exchanged."""
    return open_existing(_target(run, url))


def settle_dataset(run: Run, url: str) -> None:
    """Continue or undo an exchange of topics whose run was killed. Raises Locked if it is alive."""
    target = _target(run, url)
    found = read_journal(target.store)
    if found is not None and found[0].state is not ExchangeState.IDLE:
        with locked(target):
            settle(target)


def settle_exchange(run: Run, url: str) -> None:
    """The same for a verb that only reads: what was written beside a whole dataset does not concern it."""
    if exchanged_now(_target(run, url)) is not None:
        settle_dataset(run, url)


def _target(run: Run, url: str) -> DatasetTarget:
    if not place_exists(url):
        raise UsageError("there is no such directory", subject=url, remedy="name the directory or prefix of a dataset")
    return DatasetTarget(opened_store(run, url), local_root(url))

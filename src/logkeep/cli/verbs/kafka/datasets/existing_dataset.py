"""The dataset that an argument names."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import opened_store
from logkeep.errors import UsageError
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.datasets.bucket_rewrite import exchanged_now
from logkeep.kafka.datasets.dataset_lock import lock_dataset
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.store.access import local_root, place_exists


def existing_dataset(run: Run, url: str) -> ExistingDataset:
    """Raises UsageError if there is none, and Locked while its topics are being exchanged."""
    return open_existing(_target(run, url))


def settle_exchange(run: Run, url: str) -> None:
    """Complete an exchange of topics whose run was killed. Raises Locked if it is alive.

    What was written beside a whole dataset does not concern a verb that reads.
    """
    target = _target(run, url)
    if exchanged_now(target) is not None:
        with lock_dataset(target):
            pass


def _target(run: Run, url: str) -> DatasetTarget:
    if not place_exists(url):
        raise UsageError("there is no such directory", subject=url, remedy="name the directory or prefix of a dataset")
    return DatasetTarget(opened_store(run, url), local_root(url))

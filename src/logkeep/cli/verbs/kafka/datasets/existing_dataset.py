"""The dataset that an argument names."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import opened_store
from logkeep.errors import UsageError
from logkeep.kafka.dataset_upkeep.dataset import ExistingDataset, open_existing
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.store.access import local_root, place_exists


def existing_dataset(run: Run, url: str) -> ExistingDataset:
    """Raises UsageError if there is none."""
    if not place_exists(url):
        raise UsageError("there is no such directory", subject=url, remedy="name the directory or prefix of a dataset")
    return open_existing(DatasetTarget(opened_store(run, url), local_root(url)))

"""The store that `--store` names."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.wiring import opened_store
from logkeep.config.options import ZEEBE_STORE
from logkeep.errors import StoreLocationMissing, UsageError
from logkeep.store.access import place_exists
from logkeep.store.base import Store
from logkeep.store.readonly import ReadOnlyStore


def opened_zeebe_store(run: Run) -> Store:
    """For reading only. Raises UsageError without --store, StoreLocationMissing if there is no such directory."""
    url = run[ZEEBE_STORE]
    if url is None:
        raise UsageError("name the store of Zeebe's backups", remedy="give --store, or set zeebe.store")
    if not place_exists(url):
        raise StoreLocationMissing("there is no such directory", subject=url)
    return ReadOnlyStore(opened_store(run, url))

"""Opens the store at a URL, and creates or finds the directory of a local one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from logkeep.store.address import StoreKind, parse_address
from logkeep.store.base import Store
from logkeep.store.local.root import create_root, missing_directories, remove_unused


def open_store(url: str) -> Store:
    """Open the store at a URL. Loads the library of its kind; nothing is contacted yet."""
    address = parse_address(url)
    if address.kind is StoreKind.LOCAL:
        from logkeep.store.local.store import LocalStore  # noqa: PLC0415  # each kind loads only what it needs

        return LocalStore(address.prefix)
    from logkeep.store.buckets.aws_endpoint import with_endpoint  # noqa: PLC0415  # as above
    from logkeep.store.buckets.store import ObjectStore  # noqa: PLC0415  # obstore takes a while to load

    return ObjectStore(with_endpoint(address))


def local_root(url: str) -> Path | None:
    """The directory of a local store; None for any other."""
    address = parse_address(url) if url else None
    return Path(address.prefix).absolute() if address is not None and address.kind is StoreKind.LOCAL else None


@contextmanager
def provisional_place(url: str, *, create: bool) -> Iterator[ExitStack]:
    """Prepare what a store needs besides objects: for a local one its directory, created if `create`, and `.partial`.

    What was not there before is removed at the end, unless the block empties the stack (`pop_all`) or stored an object.
    Buckets are not created here: users create them with the provider's own tools.
    """
    address = parse_address(url)
    with ExitStack() as undo:
        if address.kind is StoreKind.LOCAL:
            root = Path(address.prefix)
            undo.callback(remove_unused, root, missing_directories(root))
            if create:
                create_root(root)
        yield undo


def create_place(url: str) -> None:
    """Create the directory of a local store."""
    address = parse_address(url)
    if address.kind is StoreKind.LOCAL:
        create_root(Path(address.prefix))


def place_exists(url: str) -> bool:
    """Whether the directory of a local store exists. A bucket counts as existing: no request is made."""
    address = parse_address(url)
    return address.kind is not StoreKind.LOCAL or Path(address.prefix).exists()

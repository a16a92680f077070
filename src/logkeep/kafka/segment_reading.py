"""The bytes of an archived segment, piece by piece: as they are stored and as they were before any compression."""

from collections.abc import Iterator

from logkeep.store.base import Store

PIECE_BYTES = 8 << 20


def stored_and_plain(store: Store, name: str, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Stored bytes (what the SHA-256 is of) and the plain log bytes they hold, from the first to the last."""
    for start in range(0, size, PIECE_BYTES):
        piece = store.get_range(name, start, min(PIECE_BYTES, size - start))
        yield piece, piece

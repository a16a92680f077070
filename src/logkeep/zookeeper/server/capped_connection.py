"""kazoo's connection with a limit for replies: kazoo itself accepts any length that a server sends.

Until the session is open nothing is accepted but small replies. Later a reply may be as large as the caller says; a
longer one ends the connection, and `refused` says so. Memory grows with the bytes that arrive.
"""

from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped
from kazoo.protocol.connection import ConnectionHandler

LARGEST_REPLY: Final = 64 << 20
"""Usual: servers answer with 1 MiB at most by default (jute.maxbuffer), lists of children aside."""
BEFORE_SESSION: Final = 64 << 10
_PIECE_BYTES: Final = 64 << 10


class CappedConnection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    """Replaces the connection of a client that was not started yet."""

    refused: str = ""
    """Why the connection was ended; empty if it was not."""

    def __init__(self, client: KazooClient, largest_reply: int) -> None:
        replaced = client._connection
        super().__init__(client, replaced.retry_sleeper, logger=replaced.logger, sasl_options=replaced.sasl_options)
        self._largest_reply = largest_reply
        self._most_bytes = BEFORE_SESSION
        client._connection = self

    def _connect(self, *address: Any) -> Any:
        self._most_bytes = BEFORE_SESSION
        connected = super()._connect(*address)
        self._most_bytes = self._largest_reply
        return connected

    def _read(self, length: int, timeout: float) -> bytes:
        """Both the length of a reply and the reply are read by this."""
        if not 0 <= length <= self._most_bytes:
            self.refused = f"it announced a reply of {length} bytes, and at most {self._most_bytes} are accepted"
            raise ConnectionDropped(self.refused)
        pieces = []
        for at in range(0, length, _PIECE_BYTES):
            pieces.append(super()._read(min(_PIECE_BYTES, length - at), timeout))
        return b"".join(pieces)

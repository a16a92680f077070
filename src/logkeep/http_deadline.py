"""A limit of time for a whole HTTP request, whatever the server sends and however slowly.

The time-out of a socket begins anew with every byte. At the deadline the connection is shut down: a read that waits
then ends, with or without an error, so the caller asks the yielded event as well.
"""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """For a request and its answer on `connection`, which it opens. The event is set if it was too late."""
    if connection.sock is None:
        connection.connect()
    # An answer that ends with its connection takes the socket away from the connection before it is read.
    late, used = threading.Event(), connection.sock

    def end() -> None:
        late.set()
        with suppress(OSError):
            socket.socket.shutdown(used, socket.SHUT_RDWR)  # of a TLS socket its own would disturb a read

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()

"""The transport inside one process: a queue for each partition, and clients that wait for replies.

Messages in queues are lost with the process; their senders have them in their outbox and send them again.
"""

import threading
from collections import deque
from collections.abc import Sequence

from logkeep.checkpoint.records import Record
from logkeep.errors import ClusterNotReady


class Queues:
    """The `checkpoint.log.Transport` of one process."""

    def __init__(self, partitions: int) -> None:
        self._waiting: list[deque[Record]] = [deque() for _ in range(partitions)]
        self._arrived = [threading.Event() for _ in range(partitions)]

    def send(self, partition: int, records: Sequence[Record]) -> None:
        self._waiting[partition].extend(records)
        self._arrived[partition].set()

    def receive(self, partition: int, most: int) -> list[Record]:
        waiting = self._waiting[partition]
        return [waiting.popleft() for _ in range(min(most, len(waiting)))]

    def consumed(self, partition: int, messages: Sequence[Record]) -> None:
        """Nothing to do: a queue gives each message once."""

    def wake(self, partition: int) -> None:
        self._arrived[partition].set()

    def wait(self, partition: int, seconds: float) -> None:
        """Until something arrived since the last wait."""
        self._arrived[partition].wait(seconds)
        self._arrived[partition].clear()


class Replies:
    """Replies by request id, for clients that wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, list[_Client]] = {}

    def expect(self, request: str) -> "_Client":
        client = _Client()
        with self._lock:
            self._clients.setdefault(request, []).append(client)
        return client

    def give(self, request: str, value: object) -> None:
        with self._lock:
            clients = self._clients.pop(request, [])
        for client in clients:
            client.value = value
            client.done.set()

    def forget(self, request: str, client: "_Client") -> None:
        with self._lock:
            left = [one for one in self._clients.get(request, []) if one is not client]
            if left:
                self._clients[request] = left
            else:
                self._clients.pop(request, None)


class _Client:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: object = None

    def wait(self, seconds: float) -> object:
        if not self.done.wait(seconds):
            remedy = "send it again with the same request id: it is processed once"
            raise ClusterNotReady(f"no reply within {seconds:g} s", remedy=remedy)
        return self.value

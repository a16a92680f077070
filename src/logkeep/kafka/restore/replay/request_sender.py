"""Produce requests to one leader: a request holds one batch of each of many logs; several requests are in flight.

A broker accepts one batch per partition in a request, and answers requests in order. So as many requests as one log may
have batches in flight are enough for all logs, and small logs share requests.
"""

from collections import deque
from collections.abc import Sequence

from logkeep.errors import InvalidAnswer
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.restore.replay.log_sender import WINDOW, LogReplay

REQUEST_BYTES = 1 << 20
"""A batch of another log is not added when the request would exceed this size."""
_MOST_LOGS = 200


class Sender:
    """One connection and its requests in flight."""

    def __init__(self, connection: Connection, broker: int, rate_limit: RateLimiter) -> None:
        self._connection, self._broker, self._rate_limit = connection, broker, rate_limit
        self._flights: deque[list[LogReplay]] = deque()
        self._replies = ReceiveBuffer(64 << 10)

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    def send(self, logs: Sequence[LogReplay]) -> bool:
        """Send one request with the next batch of each log that may send; whether there was any."""
        if len(self._flights) >= WINDOW:
            return False
        chosen, parcels = self._next_batches(logs)
        if not chosen:
            return False
        self._rate_limit.wait_to_send(self._broker)
        for log in chosen:
            log.sent()  # from here on the batch may be in the target's log, even if sending fails
        self._flights.append(chosen)
        self._connection.send_raw(API, VERSION, request_parts(parcels))
        return True

    def receive(self) -> bool:
        """Wait for the oldest reply and pass it to its logs; whether anything is acknowledged."""
        chosen = self._flights.popleft()
        reply = parse(self._connection.receive_raw(self._replies))
        acks = {ack.log: ack for ack in reply.acks}
        if len(acks) != len(chosen) or any(log.key not in acks for log in chosen):
            raise InvalidAnswer("the broker's answer does not match the request", subject=f"broker {self._broker}")
        gained = sum([log.acknowledged(acks[log.key]) for log in chosen])
        self._rate_limit.received(self._broker, gained, reply.throttle_ms)
        return gained > 0

    @staticmethod
    def _next_batches(logs: Sequence[LogReplay]) -> tuple[list[LogReplay], list[OutgoingBatch]]:
        chosen: list[LogReplay] = []
        parcels: list[OutgoingBatch] = []
        size = 0
        for log in logs:
            batch = log.sendable()
            if batch is None or (chosen and size + batch.size_bytes > REQUEST_BYTES):
                continue
            chosen.append(log)
            parcels.append(OutgoingBatch(log.key, batch.rest, batch.head))
            size += batch.size_bytes
            if len(chosen) >= _MOST_LOGS or size >= REQUEST_BYTES:
                break
        return chosen, parcels

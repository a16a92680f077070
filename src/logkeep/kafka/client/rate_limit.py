"""Limits the rate of fetch requests: a task waits before it sends a request, never while a reply is due.

There are two reasons to wait, both known before a request is sent. A broker that throttles a client reports for how
long, and does not read from that connection meanwhile: a request sent earlier would only time out. And the user may
limit the bytes received per second. Waiting between requests keeps connections healthy: no reply is left half read in a
buffer, and no request waits for a reply that cannot come.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from logkeep.errors import ClusterNotReady
from logkeep.kafka.client.fetch import FetchLimits

BURST_S = 0.25
"""How much unused time may be saved for later."""
LEAST_REPLY_BYTES = 64 << 10
_REPLY_S = 1.0
_LONGEST_THROTTLE_S = 3600.0


@dataclass(frozen=True)
class FetchRate:
    """A limit in bytes per second: what was received is a debt, and the next request may be sent when it is paid."""

    bytes_per_s: int
    """0: no limit."""
    free_at_s: float = float("-inf")

    def received(self, now_s: float, size_bytes: int) -> "FetchRate":
        if not self.bytes_per_s:
            return self
        return replace(self, free_at_s=max(self.free_at_s, now_s - BURST_S) + size_bytes / self.bytes_per_s)


def share(bytes_per_s: int | None, tasks: int) -> int:
    """The part of a limit that one of several concurrent tasks may use; 0: no limit."""
    return max(bytes_per_s // max(tasks, 1), 1) if bytes_per_s else 0


def with_short_replies(limits: FetchLimits) -> FetchLimits:
    """The same limits; with a rate, a reply has at most about one second's bytes, so that pauses stay short. A broker
    never cuts a batch, however large it is."""
    if not limits.bytes_per_s:
        return limits
    most = max(int(limits.bytes_per_s * _REPLY_S), LEAST_REPLY_BYTES)
    return replace(limits, max_bytes=min(limits.max_bytes, most))


class RateLimiter:
    """The state of one task, over all its connections. Clock and pause are arguments."""

    def __init__(self, bytes_per_s: int, pause: Callable[[float], None], clock: Callable[[], float]) -> None:
        self._pause, self._clock = pause, clock
        self._pace = FetchRate(bytes_per_s)
        self._muted_until_s: dict[int, float] = {}

    def received(self, broker: int, size_bytes: int, throttle_ms: int) -> None:
        """Note a reply. A broker's quota is for all connections of a client, so all wait. Raises ClusterNotReady."""
        now_s = self._clock()
        self._pace = self._pace.received(now_s, size_bytes)
        if throttle_ms / 1000 > _LONGEST_THROTTLE_S:
            raise ClusterNotReady(f"throttles this client for {throttle_ms // 1000} s", subject=f"broker {broker}")
        if throttle_ms:
            self._muted_until_s[broker] = now_s + throttle_ms / 1000

    def wait_to_send(self, broker: int) -> None:
        """Wait until a request to this broker may be sent."""
        free_at_s = max(self._pace.free_at_s, self._muted_until_s.pop(broker, float("-inf")))
        wait_s = free_at_s - self._clock()
        if wait_s > 0:
            self._pause(wait_s)

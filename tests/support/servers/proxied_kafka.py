"""A broker that clients reach through a proxy: what it sends can be cut, held back at a chosen point, and looked at."""

import random
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.ports import free_ports
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.processes import wait_for
from tests.support.servers.tcp_proxy import CuttingProxy, Gate, Listener

_THROTTLED = struct.Struct(">iBihiBB")
"""A fetch reply without topics, from its correlation id on: tags, throttle time, error, session, topics, tags."""
_QUOTAS = {"quota.window.size.seconds": "1", "quota.window.num": "2"}


class Budget:
    """How much a connection may bring; nothing is cut until a test says so."""

    def __init__(self) -> None:
        self.chance: random.Random | None = None
        self.most = 0

    def __call__(self) -> int | None:
        return self.chance.randrange(1, self.most) if self.chance else None


class ThrottledReplies:
    """Counts fetch replies that hold nothing but a throttle time, on all connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def listener(self) -> Listener:
        waiting = bytearray()

        def heard(data: bytes) -> None:
            waiting.extend(data)
            while len(waiting) >= 4 and len(waiting) >= 4 + (size := struct.unpack_from(">i", waiting)[0]):
                self._reply(bytes(waiting[4 : 4 + min(size, _THROTTLED.size + 1)]))
                del waiting[: 4 + size]

        return heard

    def _reply(self, frame: bytes) -> None:
        if len(frame) == _THROTTLED.size:
            _, header_tags, throttle_ms, error, session, topics, tags = _THROTTLED.unpack(frame)
            if throttle_ms > 0 and (header_tags, error, session, topics, tags) == (0, 0, 0, 1, 0):
                with self._lock:
                    self.count += 1


@dataclass(frozen=True)
class Shaky:
    """A broker behind a proxy. `topics` writes past the proxy: what a test does to clients does not hold it up."""

    kafka: "ProxiedKafka"
    proxy: CuttingProxy
    bootstrap: str
    topics: Matrix
    budget: Budget
    gate: Gate
    sending: Gate
    throttled: ThrottledReplies

    @contextmanager
    def held_after(self, size_bytes: int) -> Iterator[None]:
        """Clients get so many bytes, and no more until the block ends."""
        self.gate.close_after(size_bytes)
        try:
            wait_for(lambda: self.gate.closed, f"{size_bytes} bytes to come through")
            yield
        finally:
            self.gate.open()


class ProxiedKafka(EmbeddedKafka):
    """One listener for us, reached directly, and one whose clients are sent to the proxy."""

    def __init__(self, directory: Path, cache: Path, **properties: str) -> None:
        super().__init__(directory, cache, properties=BROKER | _QUOTAS)
        self.proxied_port, self.inner_port = free_ports(2)
        self._more = {name.replace("_", "."): value for name, value in properties.items()}

    def properties(self) -> dict[str, str]:
        usual = super().properties()
        direct = f"PLAINTEXT://127.0.0.1:{self.port}"
        names = ("PLAINTEXT", "CONTROLLER", "CLIENTS")
        return {
            **usual,
            "listeners": f"{usual['listeners']},CLIENTS://127.0.0.1:{self.inner_port}",
            "advertised.listeners": f"{direct},CLIENTS://127.0.0.1:{self.proxied_port}",
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            **self._more,
        }


@contextmanager
def shaky_kafka(directory: Path, cache: Path, **properties: str) -> Iterator[Shaky]:
    budget, gate, sending, throttled = Budget(), Gate(), Gate(), ThrottledReplies()
    with (
        ProxiedKafka(directory, cache, **properties) as kafka,
        CuttingProxy(kafka.proxied_port, kafka.inner_port, budget, gate, throttled.listener, sending) as proxy,
    ):
        yield Shaky(kafka, proxy, f"127.0.0.1:{kafka.proxied_port}", Matrix(kafka), budget, gate, sending, throttled)

"""Messages between partitions: lost, doubled and reordered by chance. Each sending has a number, for the judge.

The number is a header that receivers keep when they log the message.
"""

from random import Random

import msgspec

from logkeep.checkpoint.records import Record

SENDING = "sim-n"


class Sending(msgspec.Struct, frozen=True):
    """One sending of a message: by which partition, and which records of its own log the sender had processed."""

    partition: int
    known: int


class SimTransport:
    def __init__(self, partitions: int, choose: Random, loss: float, doubles: float) -> None:
        self.inboxes: list[list[Record]] = [[] for _ in range(partitions)]
        self.sendings: list[Sending] = []
        self.sent: list[tuple[int, Record]] = []
        self._choose, self._loss, self._doubles = choose, loss, doubles

    def send(self, sender: int, known: int, receiver: int, message: Record) -> None:
        number = len(self.sendings).to_bytes(4, "big")
        self.sendings.append(Sending(sender, known))
        self.sent.append((receiver, message))
        self.deliver(receiver, msgspec.structs.replace(message, headers=(*message.headers, (SENDING, number))))

    def deliver(self, receiver: int, message: Record) -> None:
        """What clients and coordinators send may be lost and doubled too."""
        chance = self._choose.random
        if chance() >= self._loss:
            self.inboxes[receiver].append(message)
            if chance() < self._doubles:
                self.inboxes[receiver].append(message)

    def receive(self, receiver: int) -> Record | None:
        """Any message that waits, mostly the oldest."""
        waiting = self.inboxes[receiver]
        if not waiting:
            return None
        return waiting.pop(0 if self._choose.random() < 0.6 else self._choose.randrange(len(waiting)))

    def calm(self) -> None:
        """No more losses and doubles."""
        self._loss = self._doubles = 0.0

"""Record batches made by hand, field by field, by a second implementation that shares nothing with the product."""

import struct
from dataclasses import dataclass, replace

import google_crc32c


@dataclass(frozen=True)
class Batch:
    """The fields of a batch; `payload` stands for its records and need not be any."""

    base: int
    delta: int = 0
    count: int = 1
    epoch: int = 0
    attributes: int = 0
    base_time_ms: int = 1000
    max_time_ms: int = 1000
    producer: int = -1
    producer_epoch: int = -1
    payload: bytes = b"seven.."

    @property
    def last(self) -> int:
        return self.base + self.delta

    def encode(self) -> bytes:
        checked = struct.pack(
            ">hiqqqhii",
            self.attributes,
            self.delta,
            self.base_time_ms,
            self.max_time_ms,
            self.producer,
            self.producer_epoch,
            -1,
            self.count,
        )
        checked += self.payload
        head = struct.pack(">qiibI", self.base, 9 + len(checked), self.epoch, 2, google_crc32c.value(checked))
        return head + checked


def dense(base: int, records: int, **changes: int) -> Batch:
    """A batch without holes."""
    batch = Batch(base, records - 1, records, payload=b"record." * records)
    return replace(batch, **changes)  # type: ignore[arg-type]  # all changed fields are numbers

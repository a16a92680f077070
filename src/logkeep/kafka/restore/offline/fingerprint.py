"""A fingerprint of archived batches that can be taken of the restored file as well.

It is the SHA-256 over base offset, size, record count and CRC-32C of every batch, as archived. Of a restored file the
CRC is computed from its bytes, with the producer ids moved back: when both fingerprints agree, the file holds the
archived batches, all of them, in order, every byte that their producers' checksums cover.
"""

import hashlib

import numpy as np

from logkeep.formats.kafka_log import Batches, Longs

_ROW = np.dtype([("base", ">i8"), ("size", ">i8"), ("records", ">i4"), ("crc", ">u4")])


class Fingerprint:
    """Grows with every stretch of batches."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.batches = self.records = 0
        self.first = self.last = -1

    def take(self, batches: Batches, crcs: Longs) -> None:
        if not len(batches):
            return
        rows = np.empty(len(batches), _ROW)
        rows["base"], rows["size"] = batches.base_offsets, batches.sizes
        rows["records"], rows["crc"] = batches.headers["records"], crcs
        self._sha256.update(rows.tobytes())
        self.first = self.first if self.batches else int(batches.base_offsets[0])
        self.last = int(batches.last_offsets[-1])
        self.batches += len(batches)
        self.records += int(batches.headers["records"].sum(dtype=np.int64))

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()

"""Which partition a key belongs to: CRC-32 of its UTF-8 modulo the number of partitions (librdkafka's `consistent`)."""

import zlib


def partition_of(key: str, partitions: int) -> int:
    return zlib.crc32(key.encode()) % partitions

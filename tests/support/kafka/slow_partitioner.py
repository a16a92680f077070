"""Kafka's default partitioner for a key, with Python's long numbers: the judge of the kernel."""


def slow_murmur2(data: bytes) -> int:
    """32 bits without a sign."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ (word >> 24)) * multiplier & mask
        hashed = (hashed * multiplier & mask) ^ word
    if data[whole:]:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    hashed = (hashed ^ (hashed >> 13)) * multiplier & mask
    return hashed ^ (hashed >> 15)


def slow_partition(key: bytes, partitions: int) -> int:
    return (slow_murmur2(key) & 0x7FFFFFFF) % partitions

"""Lets this process use memory that it freed again, where some megabytes are allocated and freed in turns."""

from functools import cache

_LARGEST_PIECE_BYTES = 16 << 20


@cache
def keep_freed_memory() -> None:
    """The allocator keeps freed pieces of up to 16 MiB for the next ones, and returns what is free above 32 MiB.

    glibc gives each large piece back to the system when it is freed: the next piece gets empty pages, one fault for
    each 4 KiB, which takes longer than to copy into them. When a piece is freed that is larger than all before,
    glibc raises that limit to its size (mallopt(3), "dynamic mmap threshold"). So one is allocated and freed here.
    No page of it is touched. Where a user has set the limits, and with other allocators, nothing changes.
    """
    bytes(_LARGEST_PIECE_BYTES)

"""Reads files that unpack to very much; prints how many were refused, of how many, and by how many MiB memory grew."""

import sys
from pathlib import Path

from tests.property.fuzzed_datasets import can_read, fuzz, peak_mib

if __name__ == "__main__":
    fuzz("avro", 20, 1)
    files = [Path(name).read_bytes() for name in sys.argv[1:]]
    before = peak_mib()
    print(sum(not can_read(data) for data in files), len(files), peak_mib() - before)

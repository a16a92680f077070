"""The command lines of all processes of the machine, watched for what must not be in them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def watched_command_lines() -> Iterator[set[bytes]]:
    """All command lines that any process had while the block ran."""
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(path.read_bytes())
                except OSError:
                    continue  # gone while we looked

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()

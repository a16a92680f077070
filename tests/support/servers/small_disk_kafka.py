"""A broker that may not make its files larger than a test allows: to it that is a full disk, and nobody has to be root.

The kernel fails every write beyond the limit, in the middle of it if need be, as it does where no block is free; a
Java process ignores the signal that comes with it. A broker gives up a directory in which a write failed, and itself
with the last of them: only a start anew brings either back. It begins without a limit, so a start is also new room.
"""

import resource
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.kafka.topic_matrix import BROKER


class CrampedKafka(EmbeddedKafka):
    """With one directory for everything, or two for logs and another one for what the controller writes."""

    def __init__(self, directory: Path, cache: Path, *, two_directories: bool) -> None:
        more = {"log.dirs": f"{directory}/data,{directory}/other", "metadata.log.dir": f"{directory}/metadata"}
        super().__init__(directory, cache, properties=BROKER | (more if two_directories else {}))
        self.two_directories = two_directories

    def allow(self, most_bytes: int) -> None:
        """From now on no file of the running broker grows beyond that."""
        assert self.pid is not None
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (most_bytes, hard))

    def place_of(self, topic: str, partition: int) -> str:
        """The directory in which a log lies."""
        (found,) = self.directory.glob(f"*/{topic}-{partition}")
        return found.parent.name

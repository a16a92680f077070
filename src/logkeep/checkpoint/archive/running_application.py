"""What a coordinator needs of a running application: its facts, a way to send a create, and the answers."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from logkeep.checkpoint.records import CheckpointDocument


class ApplicationFacts(msgspec.Struct, frozen=True, kw_only=True):
    application: str
    """32 hex digits."""
    name: str
    partitions: int
    history: int
    """How often it was restored."""
    repository: str
    """The id of the repository that its partitions archive to; empty if there is none, or it does not answer."""
    source: str = ""
    """The source that they archive to, also while the repository does not answer; empty if they archive nowhere."""
    latest: int = 0
    """The largest checkpoint id of its partitions: no create with it, or with a smaller one, takes a checkpoint."""
    unarchived_bytes: int = 0
    """Of the log that waits for the archive, in the partition with most."""
    brokers: str = ""
    """The bootstrap servers by which the caller found it; empty if its log is in files."""


class ApplicationPort(Protocol):
    """A running application. Calls may be lost: the coordinator repeats them until its deadline."""

    def facts(self) -> ApplicationFacts:
        """Raises ClusterError if the application does not answer."""

    def create(self, partition: int, document: CheckpointDocument) -> None:
        """Send a create to a partition. It returns before the partition has processed it."""

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        """For each partition that has *processed* a create with this id: created or ignored, with the id of the
        repository that the partition archives to."""

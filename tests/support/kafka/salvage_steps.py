"""Salvages into a directory, by the product's own steps."""

from collections.abc import Sequence
from pathlib import Path

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.disks.directories import hold_directories, list_directories
from logkeep.kafka.salvage.plan import SalvageOptions
from logkeep.kafka.salvage.run import KafkaSalvage, SalvageDone
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.whole_backups import Archive


def salvaged(place: SourceRef, roots: Sequence[Path], **wish: object) -> tuple[Archive, SalvageDone]:
    """A backup from disks, and a reader of it."""
    with hold_directories(roots):
        task = KafkaSalvage(place, list_directories(roots), utc_now, random_token)
        done = task.run(SalvageOptions(**wish), InlineEngine())  # type: ignore[arg-type]  # a test's own wish
    return Archive("nobody:9092", place), done


def codes(done: SalvageDone) -> set[str]:
    return {f.code for f in done.findings}


def told(done: SalvageDone, code: str) -> list[str]:
    return [f"{f.where}: {f.what}" for f in done.findings if f.code == code]

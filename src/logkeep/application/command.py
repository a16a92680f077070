"""The command that a handler gets."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Command:
    name: str
    key: str
    """It chooses the partition."""
    value: Any
    position: int
    """In the log of its partition."""
    time: datetime
    """When the partition logged it; never before that of an earlier command."""

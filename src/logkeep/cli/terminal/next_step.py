"""The next step after a verb, as text: what to do, then commands on lines of their own, so that they can be copied."""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.cli.terminal.text import TerminalStyle


@dataclass(frozen=True)
class NextStep:
    """`what` completes "next: …". The commands are alternatives, or follow each other; they are never wrapped."""

    what: str
    commands: Sequence[str]

    def text(self, look: TerminalStyle) -> str:
        return "\n".join([look.prose(f"next: {self.what}", indent=6), *(look.line(f"  {c}") for c in self.commands)])

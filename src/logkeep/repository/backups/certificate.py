"""The certificate of a backup: the result of each rule of a consistent cut, from archived bytes alone.

It is part of the verification at the level `cut`. Each rule is held; or broken, with the records that break it; or
unchecked, with the reason. A certificate without a broken rule certifies the backup; its verdict names every unchecked
rule.
"""

from typing import Literal

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.plurals import plural
from logkeep.model.time import Rfc3339

Outcome = Literal["held", "broken", "unchecked"]
MOST_NAMED = 20
"""How many records are named for each rule; `count` counts all."""


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one rule."""

    rule: str
    """`V1` to `V13`."""
    title: str
    outcome: Outcome
    what: str = ""
    """What was compared; why it is broken or unchecked."""
    records: tuple[str, ...] = ()
    """The first records that break it, or that it counts."""
    count: int = 0


class CapturedMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A member of the backup set to which the application belongs."""

    source: str
    kind: str = ""
    started: Rfc3339 | None = None
    """When its backup began; None: it has no completed one of this id."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    application: str
    history: int
    checkpoint: StoredId
    rules: tuple[RuleOutcome, ...]
    records: int
    """Records that were read."""
    in_transit: int = 0
    """Messages that were sent inside the cut and not received inside: a restore sends or appends them again."""
    declared: tuple[str, ...] = ()
    """What no rule can check, in words."""
    captured: tuple[CapturedMember, ...] = ()
    """The members of the set, in the order in which their backups began; empty for an application alone."""
    exact: bool = True
    """False for participants without transactions: a restore may repeat records."""
    duplicates: int = 0
    """If the cut is not exact: how many records may be there twice, or may be repeated after a restore."""

    @property
    def broken(self) -> tuple[RuleOutcome, ...]:
        return tuple(rule for rule in self.rules if rule.outcome == "broken")

    @property
    def unchecked(self) -> tuple[RuleOutcome, ...]:
        return tuple(rule for rule in self.rules if rule.outcome == "unchecked")

    @property
    def verdict(self) -> str:
        """One line for people."""
        if self.broken:
            return f"the cut is not consistent: {_names(self.broken)} broken"
        rest = f"; not checkable: {_names(self.unchecked)}" if self.unchecked else ""
        held = f"{len(self.rules) - len(self.unchecked)} rules held{rest}"
        if not self.exact:
            lost = "" if any(rule.rule == "V8" for rule in self.unchecked) else "nothing is lost, but "
            return f"{lost}the cut is not exact, {plural(self.duplicates, 'possible duplicate')}: {held}"
        return f"the cut is consistent: {held}"


def _names(rules: tuple[RuleOutcome, ...]) -> str:
    return ", ".join(rule.rule for rule in rules)

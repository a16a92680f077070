"""What an option of zkbackup is: the house's, with the names that zkbackup has for flags, variables and keys."""

from dataclasses import dataclass
from typing import TypeVar

from logkeep.config.option import Option, Spelling

T = TypeVar("T")


@dataclass(frozen=True)
class ZkOption(Option[T]):
    """`key` makes the variable: `backup.base_dir` is `ZKBACKUP_BACKUP_BASE_DIR`.

    One key may serve several options: what `backup` calls the output directory is the base directory of `list`.
    """

    also: tuple[str, ...] = ()
    """Other flags that mean the same."""
    flagless: bool = False
    """Only for configuration files and variables."""

    def spellings(self) -> tuple[Spelling[T], ...]:
        variables = (variable_name(self.key),) if self.key else ()
        slot = self.name if self.typed else ""
        flag = "" if self.flagless else f"--{self.typed or self.name}"
        return (Spelling(self.kind, flag, self.key, (*variables, *self.variables), slot=slot),)


def variable_name(key: str) -> str:
    return "ZKBACKUP_" + key.upper().replace(".", "_")

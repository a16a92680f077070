"""An option: one value from which its flag, variable, YAML key and reference line are made.

Most options have one *spelling*. A secret has three, none of which puts the secret on a command line or into a
configuration file: `<key>_file`, `<key>_command`, and `<key>: env:NAME` or `file:PATH` (or the variable itself).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from logkeep.config.option_types import FilePath, OptionType
from logkeep.config.secrets import CommandReference, EnvironmentReference, FileReference, SecretReference

T = TypeVar("T")


class Where(StrEnum):
    """Where an option may be given."""

    EVERYWHERE = "everywhere"
    FLAG_AND_ENVIRONMENT = "flag and environment"
    """It names the file to read, so it cannot be in one."""
    FLAG = "flag"
    """It is for one call; as a permanent setting it would surprise (`--yes`, `--json`)."""


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option. `default` is its value when it is not set; `default_text` explains a computed default."""

    name: str
    kind: OptionType[T]
    default: T
    help: str
    key: str = ""
    """`section.key` in YAML; the variable `LOGKEEP_SECTION_KEY` is made from it."""
    short: str = ""
    where: Where = Where.EVERYWHERE
    variables: tuple[str, ...] = ()
    """Documented short variables besides the one made from the key."""
    per_source: bool = False
    """May also be given as `sources.<name>.<last part of key>`, which overrides the general key of that file."""
    counted: bool = False
    """`-vv`: the number of times the flag is given."""
    default_text: str = ""
    typed: str = ""
    """The flag, where it is not the name: two verbs may use the same flag for different options."""
    also: tuple[str, ...] = ()
    """Other flags that mean the same."""
    not_from_found_file: Callable[[T], str] = lambda _value: ""
    """Why a value is refused in a file in the working directory; empty if it is not."""

    def spellings(self) -> "tuple[Spelling[T], ...]":
        """Each way to give it."""
        flag, key = f"--{self.typed or self.name}", self.key if self.where is Where.EVERYWHERE else ""
        made = (variable_name(self.key),) if self.key and self.where is not Where.FLAG else ()
        slot = f"--{self.name}" if self.typed else ""
        return (Spelling(self.kind, flag, key, made + self.variables, slot=slot, also=self.also),)


@dataclass(frozen=True)
class SecretOption(Option[SecretReference | None]):
    """An option whose value is only given by reference. Its `kind` is SECRET."""

    def spellings(self) -> "tuple[Spelling[SecretReference | None], ...]":
        variable = variable_name(self.key)
        return (
            Spelling(_FileKind(), f"--{self.name}-file", f"{self.key}_file", (f"{variable}_FILE",)),
            Spelling(_CommandKind(), f"--{self.name}-command", f"{self.key}_command", (f"{variable}_COMMAND",)),
            Spelling(_EnvironmentKind(), "", self.key, (variable,), names_itself=True),
        )


@dataclass(frozen=True)
class Spelling(Generic[T]):
    """One flag, YAML key and variables that mean the same; empty where there is none."""

    kind: OptionType[T]
    flag: str
    key: str
    variables: tuple[str, ...]
    names_itself: bool = False
    """The variable contains the secret: the setting's value is the variable's name."""
    slot: str = ""
    """The name that the flag's value is passed on by; empty: the flag itself."""
    also: tuple[str, ...] = ()
    """Other flags that mean the same."""


def variable_name(key: str) -> str:
    return "LOGKEEP_" + key.upper().replace(".", "_")


@dataclass(frozen=True)
class _FileKind:
    metavar: str = "FILE"
    expected: str = "the path of a file that only you can read"

    def parse(self, text: str) -> SecretReference | None:
        return FileReference(FilePath().parse(text))

    def from_yaml(self, value: object) -> SecretReference | None:
        return FileReference(FilePath().from_yaml(value))

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class _CommandKind:
    metavar: str = "COMMAND"
    expected: str = "a command, as text or as a list of its words"

    def parse(self, text: str) -> SecretReference | None:
        return CommandReference.split(text)

    def from_yaml(self, value: object) -> SecretReference | None:
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return CommandReference(tuple(value))
        if not isinstance(value, str):
            raise ValueError(f"must be {self.expected}")  # noqa: TRY004  option types promise ValueError
        return self.parse(value)

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True)
class _EnvironmentKind:
    metavar: str = "env:NAME|file:PATH"
    expected: str = "env:NAME or file:PATH"

    def parse(self, text: str) -> SecretReference | None:
        return EnvironmentReference(text)

    def from_yaml(self, value: object) -> SecretReference | None:
        text = value if isinstance(value, str) else ""
        if text.startswith("env:") and text[4:].isidentifier():
            return EnvironmentReference(text[4:])
        if text.startswith("file:") and text[5:]:
            return FileReference(FilePath().parse(text[5:]))
        # The value is not repeated in the message: it may be the secret itself.
        raise ValueError(
            "must name the secret, not contain it: use env:NAME or file:PATH, or the same key with _file or _command"
        )

    def show(self, value: object) -> str:
        return str(value)


SECRET = _EnvironmentKind()
"""The kind of every SecretOption."""

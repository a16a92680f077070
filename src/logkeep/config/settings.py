"""The settings of a run, each with the place it came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar, cast

from logkeep.config.option import Option, SecretOption
from logkeep.config.option_types import Timestamp
from logkeep.config.secrets import fetch
from logkeep.config.time_text import assumption
from logkeep.model.redaction import redact
from logkeep.model.secret import HIDDEN, Secret
from logkeep.model.time import rfc3339

T = TypeVar("T")


class SettingPlace(StrEnum):
    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True)
class SettingOrigin:
    """`place` for scripts; `detail` (the flag, the variable, file:line) for users."""

    place: SettingPlace
    detail: str = ""

    def __str__(self) -> str:
        return self.detail or self.place


@dataclass(frozen=True)
class Setting:
    option: Option[Any]
    value: Any
    origin: SettingOrigin

    def shown(self) -> str:
        """The value as text without secrets; empty when it is not set."""
        if self.value is None:
            return ""
        if isinstance(self.option, SecretOption):
            return HIDDEN
        return redact(self.option.kind.show(self.value))


@dataclass(frozen=True)
class Settings:
    """Typed access by the option itself: `settings[REPO]` is a `str | None`."""

    by_name: Mapping[str, Setting]
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __getitem__(self, option: Option[T]) -> T:
        found = self.by_name.get(option.name)
        return cast("T", found.value) if found else option.default

    def __iter__(self) -> Iterator[Setting]:
        return iter(self.by_name.values())

    def origin(self, option: Option[Any]) -> SettingOrigin:
        found = self.by_name.get(option.name)
        return found.origin if found else SettingOrigin(SettingPlace.DEFAULT)

    def typed(self, option: Option[Any]) -> bool:
        """Whether it was given as a flag."""
        return self.origin(option).place is SettingPlace.FLAG

    def assumed_times(self, flags: Mapping[str, object]) -> Iterator[str]:
        """For people: the times among the flags whose text leaves something open, as they were understood."""
        for setting in self:
            text = flags.get(f"--{setting.option.name}")
            if isinstance(setting.option.kind, Timestamp) and isinstance(text, str) and (by := assumption(text)):
                moment = datetime.fromtimestamp(setting.value / 1000, UTC)
                yield f"--{setting.option.name} {text} is {rfc3339(moment)} ({by})"

    def secret(self, option: SecretOption) -> Secret | None:
        """Fetch a secret now; None when the option is not set. Raises ConfigError."""
        reference = self[option]
        return fetch(reference, self.environ) if reference is not None else None

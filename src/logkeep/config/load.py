"""Settings from all places by precedence: flag, environment, project file, user files, system file, default.

Every given value is checked, even one that a stronger place overrides: a mistake in a file should be found before the
flag is left out. All problems are collected, so that `config validate` can show them at once; `load` raises the first.
Unknown variables are warnings, because other programs may use the same prefix.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from logkeep.config.file_text import ConfigText, read_text
from logkeep.config.option import Option, Spelling
from logkeep.config.option_types import Repeatable, SourceName
from logkeep.config.options import OPTIONS, PLAIN_VARIABLES, SOURCE
from logkeep.config.places import Places
from logkeep.config.secrets import CommandReference
from logkeep.config.settings import Setting, SettingOrigin, SettingPlace, Settings
from logkeep.errors import ConfigError, UsageError
from logkeep.file_owners import OriginFile

_SEE_OPTIONS = "see docs/reference/options.md for the options"
_NAME_IT = "pass it as a flag, put it into the user's file, or name this file with --config"
_SEE_VARIABLES = "see docs/reference/options.md for the variables"
Flags = Mapping[str, object]
"""The values of the command line by flag: `{"--repo": "file:///x", "--verbose": 2}`. None means not given."""


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    problems: tuple[UsageError, ...]
    warnings: tuple[str, ...]
    files: tuple[Path, ...]
    """The files that exist, strongest first."""


@dataclass(frozen=True)
class _Given:
    """One value of an option from one place, not yet parsed."""

    spelling: Spelling[Any]
    raw: object
    origin: SettingOrigin
    file: OriginFile | None = None


def load(flags: Flags, environ: Mapping[str, str], places: Places, options: Sequence[Option[Any]] = OPTIONS) -> Loaded:
    """The settings of this run. Raises the first problem."""
    loaded = examine(flags, environ, places, options)
    if loaded.problems:
        raise first_problem(loaded, "; `logkeep config validate` shows all")
    return loaded


def first_problem(loaded: Loaded, hint: str = "") -> UsageError:
    """The first problem, with the number of further ones."""
    first, more = loaded.problems[0], len(loaded.problems) - 1
    if more:
        first.what += f" (and {more} more problem{'s' if more > 1 else ''}{hint})"
    return first


def examine(
    flags: Flags, environ: Mapping[str, str], places: Places, options: Sequence[Option[Any]] = OPTIONS
) -> Loaded:
    """Like `load`, but returns the problems; settings with a problem keep their default."""
    files = _Files(places, options)
    layers = [_FlagLayer(flags), _EnvironmentLayer(environ), *files.layers]
    problems: list[UsageError] = list(files.problems)
    source = _resolve(SOURCE, layers, "", problems).value
    settings = {o.name: _resolve(o, layers, source or "", problems if o != SOURCE else []) for o in options}
    warnings = unknown_variables(environ, options, "LOGKEEP_", _SEE_VARIABLES, PLAIN_VARIABLES)
    return Loaded(Settings(settings, environ), tuple(problems), warnings, tuple(layer.path for layer in files.layers))


def _resolve(option: Option[Any], layers: "Sequence[_Layer]", source: str, problems: list[UsageError]) -> Setting:
    chosen: Setting | None = None
    for layer in layers:
        given = layer.find(option, source)
        if len(given) > 1:
            names = " and ".join(str(g.origin) for g in given)
            problems.append(_problem(layer.error, f"{option.name} is given twice, by {names}", "", "keep one of them"))
        elif given:
            setting = _parsed(option, given[0], layer, problems)
            chosen = chosen or setting
    return chosen or Setting(option, option.default, SettingOrigin(SettingPlace.DEFAULT))


def _parsed(option: Option[Any], given: _Given, layer: "_Layer", problems: list[UsageError]) -> Setting | None:
    try:
        value = _value(given)
        if layer.found and (what := option.not_from_found_file(value)):
            problems.append(ConfigError(what, subject=str(given.origin), remedy=_NAME_IT))
            return None
        return Setting(option, value, given.origin)
    except ValueError as wrong:
        name = given.spelling.key if given.file else str(given.origin)
        subject = str(given.origin) if given.file else ""
        problems.append(_problem(layer.error, f"{name} {wrong}", subject, f"give {given.spelling.kind.expected}"))
        return None


def _value(given: _Given) -> object:
    kind, raw = given.spelling.kind, given.raw
    if given.file is not None:
        value = kind.from_yaml(raw)
        return replace(value, defined_in=given.file) if isinstance(value, CommandReference) else value
    if isinstance(raw, tuple) and isinstance(kind, Repeatable):
        return kind.from_flags(raw)
    return kind.parse(raw) if isinstance(raw, str) else raw


def _problem(error: type[UsageError], what: str, subject: str, remedy: str) -> UsageError:
    return error(what, subject=subject, remedy=remedy)


class _Layer:
    """One place where options can be given."""

    error: type[UsageError] = ConfigError
    found: bool = False
    """A file in the working directory, which the user did not name."""

    def find(self, option: Option[Any], source: str) -> list[_Given]:
        raise NotImplementedError


@dataclass(frozen=True)
class _FlagLayer(_Layer):
    flags: Flags
    error = UsageError

    def find(self, option: Option[Any], source: str) -> list[_Given]:
        return [
            _Given(spelling, self.flags[slot], SettingOrigin(SettingPlace.FLAG, spelling.flag))
            for spelling in option.spellings()
            if self.flags.get(slot := spelling.slot or spelling.flag) not in (None, ())
        ]


@dataclass(frozen=True)
class _EnvironmentLayer(_Layer):
    environ: Mapping[str, str]

    def find(self, option: Option[Any], source: str) -> list[_Given]:
        found = [
            _Given(s, name if s.names_itself else self.environ[name], SettingOrigin(SettingPlace.ENVIRONMENT, name))
            for s in option.spellings()
            for name in s.variables
            if self.environ.get(name)  # empty counts as not set: compose files and unit files produce such variables
        ]
        # Two names of one variable with the same value do not contradict each other.
        return found[:1] if len({repr(g.raw) for g in found}) == 1 else found


@dataclass(frozen=True)
class _FileLayer(_Layer):
    path: Path
    entries: Mapping[str, tuple[object, int]]
    origin: OriginFile
    found: bool

    def find(self, option: Option[Any], source: str) -> list[_Given]:
        if option.per_source and source and (own := self._at(option, f"sources.{source}.")):
            return own
        return self._at(option, "")

    def _at(self, option: Option[Any], prefix: str) -> list[_Given]:
        found = []
        for spelling in option.spellings():
            key = prefix + spelling.key.rpartition(".")[2] if prefix else spelling.key
            if key in self.entries:
                raw, line = self.entries[key]
                origin = SettingOrigin(SettingPlace.FILE, f"{self.path}:{line}")
                found.append(_Given(replace(spelling, key=key), raw, origin, self.origin))
        return found


class _Files:
    """The contents of the files that exist, with unknown keys as problems."""

    def __init__(self, places: Places, options: Sequence[Option[Any]]) -> None:
        self.keys = {s.key for o in options for s in o.spellings() if s.key}
        self.inner = {s.key.rpartition(".")[2] for o in options if o.per_source for s in o.spellings() if s.key}
        self.sections = {key[:i] for key in self.keys for i, c in enumerate(key) if c == "."} | {"sources"}
        self.layers: list[_FileLayer] = []
        self.problems: list[UsageError] = []
        for path in places.in_order():
            self._add(path, required=path == places.required, found=path == places.found)

    def _add(self, path: Path, *, required: bool, found: bool) -> None:
        try:
            content = read_text(path, required=required, found=found)
            if content is not None:
                self._add_text(path, content, found=found)
        except ConfigError as error:
            self.problems.append(error)

    def _add_text(self, path: Path, content: ConfigText, *, found: bool) -> None:
        from logkeep.config.document import parse_document  # noqa: PLC0415  YAML is slow; most runs have no file

        entries = parse_document(content.text, path, self.keys)
        self.problems.extend(p for e in entries if (p := self._unknown(e.key, e.value, f"{path}:{e.line}")))
        self.layers.append(_FileLayer(path, {e.key: (e.value, e.line) for e in entries}, content.origin, found))

    def _unknown(self, key: str, value: object, subject: str) -> ConfigError | None:
        if key in self.keys or (key in self.sections and value is None) or self._of_a_source(key, value):
            return None
        if key in self.sections:
            return ConfigError(f"{key} is a section, not a value", subject=subject, remedy="put its keys below it")
        known = self.keys | {f"sources.{key.split('.')[1]}.{i}" for i in self.inner if key.count(".") > 1}
        return ConfigError(f"unknown key {key}", subject=subject, remedy=did_you_mean(key, known) or _SEE_OPTIONS)

    def _of_a_source(self, key: str, value: object) -> bool:
        first, _, rest = key.partition(".")
        name, dot, inner = rest.partition(".")
        if first != "sources" or not _is_source_name(name):
            return False
        return inner in self.inner or (not dot and value is None)


def _is_source_name(text: str) -> bool:
    try:
        return bool(SourceName().parse(text))
    except ValueError:
        return False


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A remedy that names the most similar known word; empty when none is similar."""
    import difflib  # noqa: PLC0415  loaded only after a mistake

    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def unknown_variables(
    environ: Mapping[str, str], options: Sequence[Option[Any]], prefix: str, see: str, also: Iterable[str] = ()
) -> tuple[str, ...]:
    """Warnings about variables with the program's prefix that it does not know. `see` names the documentation."""
    known = {name for o in options for s in o.spellings() for name in s.variables}.union(also)
    unknown = sorted(name for name in environ if name.startswith(prefix) and name not in known)
    return tuple(f"unknown variable {name}: {did_you_mean(name, known) or see}" for name in unknown)

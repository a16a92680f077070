"""`logkeep config show` and `config validate`: every setting with its origin, and every problem."""

from typing import Any

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import COMMON, verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.load import examine
from logkeep.config.option import Option, Where
from logkeep.config.options import OPTIONS
from logkeep.config.settings import Setting

_IN_FILES = tuple(o for o in OPTIONS if o.where is Where.EVERYWHERE)


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str | None
    """As text that can be used as a value again; null when nothing is set; `***` for a secret."""
    origin: str
    """`flag`, `environment`, `file` or `default`."""
    detail: str
    """The flag, the variable, or file:line."""


class ConfigShowReport(msgspec.Struct, frozen=True, kw_only=True):
    files: list[str]
    """The files that were read, strongest first."""
    settings: list[ShownSetting]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    subject: str
    remedy: str


class ConfigValidateReport(msgspec.Struct, frozen=True, kw_only=True):
    files: list[str]
    problems: list[Problem]
    warnings: list[str]


def _setting_row(setting: Setting) -> ShownSetting:
    value = setting.shown() if setting.value is not None else None
    return ShownSetting(key=setting.option.key, value=value, origin=setting.origin.place, detail=setting.origin.detail)


def _show_text(report: ConfigShowReport, look: TerminalStyle) -> str:
    rows = [(s.key, "-" if s.value is None else s.value, s.detail or s.origin) for s in report.settings]
    files = ", ".join(report.files) or "none"
    return look.table(("KEY", "VALUE", "ORIGIN"), rows) + look.text(f"\n\nfiles: {files}")


def _file_options() -> list[Option[Any]]:
    """Every option that a file may hold, by its flag; where two kinds of source share one, the first."""
    flags: dict[str, Option[Any]] = {}
    for option in _IN_FILES:
        if option not in COMMON:
            flags.setdefault(option.typed or option.name, option)
    return list(flags.values())


@verb(report=ConfigShowReport, text=_show_text, options=_file_options())
def show(run: Run) -> ConfigShowReport:
    """Print every setting with the place it came from.

    Takes every option that a file may hold, to try out what a flag changes. Secrets are shown as ***.
    Precedence, strongest first: flag, environment, ./logkeep.yaml or --config FILE, user files,
    /etc/logkeep/config.yaml, default.
    """
    settings = [_setting_row(s) for s in run.settings if s.option.where is Where.EVERYWHERE]
    return ConfigShowReport(files=[str(p) for p in run.files], settings=settings)


def _validate_text(report: ConfigValidateReport, look: TerminalStyle) -> str:
    lines = [f"{look.state('WARN')}  {warning}" for warning in report.warnings]
    for problem in report.problems:
        where = f"  ({problem.subject})" if problem.subject else ""
        lines += [f"{look.state('FAIL')}  {problem.message}{where}", f"      try: {problem.remedy}"]
    if not report.problems:
        lines.append(f"{look.state('OK')}    {', '.join(report.files) or 'no configuration file; defaults are used'}")
    return look.text("\n".join(lines))


@verb(
    report=ConfigValidateReport,
    text=_validate_text,
    exit_code=lambda report: 40 if report.problems else 0,
    configured=False,
)
def validate(run: Run) -> ConfigValidateReport:
    """Check all configuration and show every problem.

    Reads the same files and variables as every other verb, and ends with 40 when one of them is wrong. Secrets are not
    fetched.
    """
    world = run.world
    loaded = examine({}, world.environ, world.places(run.named_config))
    problems = [Problem(message=p.what, subject=p.subject, remedy=p.remedy) for p in loaded.problems]
    return ConfigValidateReport(files=[str(p) for p in loaded.files], problems=problems, warnings=list(loaded.warnings))

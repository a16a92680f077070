"""Where zkbackup's settings come from: flags, `ZKBACKUP_SECTION_KEY`, ./zkbackup.yaml, ~/.zkbackup.yaml, /etc.

The rules are the house's (`config.load`): unknown keys and wrong values are errors with file and line, also where a
stronger place overrides them; an unknown variable is a warning.
"""

from collections.abc import Mapping
from pathlib import Path

from logkeep.cli.zkbackup.options import OPTIONS
from logkeep.config.load import Flags, Loaded, did_you_mean, examine
from logkeep.config.places import Places
from logkeep.config.settings import Settings
from logkeep.errors import UsageError

PROJECT_FILE = "zkbackup.yaml"
SYSTEM_FILE = Path("/etc/zkbackup/config.yaml")
_PAGE = "docs/guides/zookeeper.md"


def places(environ: Mapping[str, str], directory: Path, named: Path | None, system: Path = SYSTEM_FILE) -> Places:
    """Files to read, strongest first; `named` stands in place of the one in the working directory."""
    home = environ.get("HOME", "")
    user = (Path(home, f".{PROJECT_FILE}"),) if home else ()
    return Places(named, (*user, system)) if named else Places(None, (directory / PROJECT_FILE, *user, system))


def load_settings(flags: Flags, environ: Mapping[str, str], where: Places) -> tuple[Settings, tuple[str, ...]]:
    """The settings of this call, and warnings. Raises the first problem and says how many more there are."""
    loaded = examine(flags, environ, where, OPTIONS)
    if loaded.problems:
        raise _first(loaded)
    return loaded.settings, _unknown_variables(environ)


def _first(loaded: Loaded) -> UsageError:
    first, more = loaded.problems[0], len(loaded.problems) - 1
    if more:
        first.what += f" (and {more} more problem{'s' if more > 1 else ''})"
    if "docs/reference" in first.remedy:  # those pages are of the other program
        first.remedy = f"{_PAGE} shows what may stand there"
    return first


def _unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = {name for option in OPTIONS for spelling in option.spellings() for name in spelling.variables}
    strange = sorted(name for name in environ if name.startswith("ZKBACKUP_") and name not in known)
    return tuple(f"unknown variable {name}: {_hint(name, known)}" for name in strange)


def _hint(name: str, known: set[str]) -> str:
    near = did_you_mean(name, known, "")
    return near if near.startswith("did") else f"see {_PAGE}"

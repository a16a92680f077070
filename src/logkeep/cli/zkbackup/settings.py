"""Where zkbackup's settings come from: flags, `ZKBACKUP_SECTION_KEY`, ./zkbackup.yaml, ~/.zkbackup.yaml, /etc.

The rules are those of `config.load`: unknown keys and wrong values are errors with file and line, even where a
stronger place overrides them; an unknown variable is a warning.
"""

from collections.abc import Mapping
from pathlib import Path

from logkeep.cli.zkbackup.options import OPTIONS
from logkeep.config.load import Flags, examine, first_problem, unknown_variables
from logkeep.config.places import Places, project_or_named
from logkeep.config.settings import Settings

PROJECT_FILE = "zkbackup.yaml"
SYSTEM_FILE = Path("/etc/zkbackup/config.yaml")
_PAGE = "docs/guides/zookeeper.md"


def places(environ: Mapping[str, str], directory: Path, named: Path | None, system: Path = SYSTEM_FILE) -> Places:
    """Files to read, strongest first; `named` replaces the one in the working directory."""
    home = environ.get("HOME", "")
    user = (Path(home, f".{PROJECT_FILE}"),) if home else ()
    return project_or_named(directory, PROJECT_FILE, named, (*user, system))


def load_settings(flags: Flags, environ: Mapping[str, str], where: Places) -> tuple[Settings, tuple[str, ...]]:
    """The settings of this call, and warnings. Raises the first problem."""
    loaded = examine(flags, environ, where, OPTIONS)
    if loaded.problems:
        first = first_problem(loaded)
        if "docs/reference" in first.remedy:  # these pages describe logkeep
            first.remedy = f"see {_PAGE} for the options"
        raise first
    return loaded.settings, unknown_variables(environ, OPTIONS, "ZKBACKUP_", f"see {_PAGE}")

"""Where configuration files are, computed from an environment that is passed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT_FILE = "logkeep.yaml"
SYSTEM_FILE = Path("/etc/logkeep/config.yaml")


@dataclass(frozen=True)
class Places:
    """Files to read, strongest first. `required` must exist; the others need not."""

    required: Path | None
    optional: tuple[Path, ...]
    found: Path | None = None
    """The file in the working directory. The user did not name it, so it counts only if no other user can change it."""

    def in_order(self) -> tuple[Path, ...]:
        return (*filter(None, (self.required, self.found)), *self.optional)


def project_or_named(directory: Path, name: str, named: Path | None, optional: tuple[Path, ...]) -> Places:
    """The file in the working directory, or the `named` one instead, and then the `optional` ones."""
    return Places(named, optional) if named is not None else Places(None, optional, directory / name)


NOWHERE = Places(None, ())


def standard_places(
    environ: Mapping[str, str], *, directory: Path, named: Path | None = None, system: Path = SYSTEM_FILE
) -> Places:
    """The project's file (or the `named` one instead), the user's two, the system's."""
    user = tuple(home / name for home, name in _user_files(environ))
    return project_or_named(directory, PROJECT_FILE, named, (*user, system))


def _user_files(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    home = environ.get("HOME", "")
    base = environ.get("XDG_CONFIG_HOME", "")
    found: list[tuple[Path, str]] = []
    # By the XDG specification a relative value must be ignored.
    if base.startswith("/"):
        found.append((Path(base), "logkeep/config.yaml"))
    elif home:
        found.append((Path(home), ".config/logkeep/config.yaml"))
    if home:
        found.append((Path(home), ".logkeep.yaml"))
    return found

"""`logkeep version`: works with a broken configuration too, because bug reports need it."""

import platform
import sys

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.model.version import __version__


class VersionReport(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    python: str
    platform: str


@verb(
    report=VersionReport,
    text=lambda report, look: look.text(f"logkeep {report.version} (Python {report.python}, {report.platform})"),
    configured=False,
)
def version(_run: Run) -> VersionReport:
    """Print the version of Logkeep and what it runs on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return VersionReport(version=__version__, python=python, platform=f"{sys.platform} {platform.machine()}")

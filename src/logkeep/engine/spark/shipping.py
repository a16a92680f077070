"""Packs the installed logkeep package for workers on other machines."""

import zipfile
from pathlib import Path

import logkeep


def package_zip(directory: Path) -> Path:
    """Write the package, as it is imported here, into `directory`; workers import it from the file."""
    root = Path(logkeep.__file__).parent
    target = directory / "logkeep.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, Path("logkeep") / file.relative_to(root))
    return target

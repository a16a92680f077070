"""The wheel that `make wheel` builds: all of the package, nothing else, and both programs."""

import subprocess
import sys
import zipfile
from pathlib import Path

from logkeep.formats.kernel_files import BESIDE_THE_PACKAGE
from tests.docs.pages import ROOT


def test_the_wheel_holds_the_package_and_both_programs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "installed")
    assert files_below(tmp_path / "installed" / "logkeep") == source_files()
    assert (tmp_path / "installed" / "pyspark_logkeep" / "__init__.py").exists(), "Spark finds the format by it"
    (entries,) = (tmp_path / "installed").glob("*.dist-info/entry_points.txt")
    assert "logkeep = logkeep.cli.frame.main:main\nzkbackup = logkeep.cli.zkbackup.main:main" in entries.read_text()


def files_below(directory: Path) -> set[str]:
    found = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def source_files() -> set[str]:
    """The package without the kernels that `make install` compiled for this machine."""
    package = ROOT / "src" / "logkeep"
    compiled = BESIDE_THE_PACKAGE.relative_to(package)
    return {name for name in files_below(package) if not Path(name).is_relative_to(compiled)}

"""Servers that tests start from an archive: fetched by Ivy, pinned by SHA-256, and compared again at every start.

    python -m tests.support.servers.server_archives unpack zeebe DIRECTORY
    python -m tests.support.servers.server_archives lock FILE        resolves all anew (`make lock`)

`archives.lock` has two rows for each: the archive, and the tree that is unpacked from it. The hash of a tree is that of
its files, each with its path; what lies in `logs` is left out, since Zeebe writes there.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.class_archive import this_java
from logkeep.engine.spark.jvm.jar_lock import Pins, differences, hashes, parse_lock, refuse, render_lock
from logkeep.engine.spark.jvm.jars import spark_home

LOCK = Path(__file__).with_name("archives.lock")
_TREE = "tree"
_WRITTEN = "logs"
_FETCH_S = 900
_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="logkeep" module="archives"/>
  <dependencies>
    <dependency org="{group}" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="tar.gz" ext="tar.gz"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""
"""It names the archive: the POMs declare none."""


@dataclass(frozen=True)
class ServerArchive:
    """`coordinate`: group:artifact:version, and a classifier if it has one."""

    coordinate: str

    def unpack(self, home: Path) -> Path:
        """Fetch the archive, compare it, and unpack it below `home`, where nothing of it may be yet."""
        with self._fetched(home) as archive:
            _compare(self._pins({archive.name}), hashes([archive]), archive)
            _unpacked(archive, self._tree(home))
        return self.checked(home)

    def checked(self, home: Path) -> Path:
        """The unpacked tree. Raises JarsUntrusted if it is not what the pinned archive has."""
        tree = self._tree(home)
        _compare(self._pins({_TREE}), {_TREE: tree_hash(tree)}, tree)
        return tree

    def fresh_pins(self) -> Pins:
        """Of what a registry sends now."""
        with tempfile.TemporaryDirectory() as scratch, self._fetched(Path(scratch)) as archive:
            return {**hashes([archive]), _TREE: tree_hash(_unpacked(archive, self._tree(Path(scratch))))}

    def _pins(self, names: set[str]) -> Pins:
        return {name: pin for name, pin in parse_lock(LOCK.read_text())[self.coordinate].items() if name in names}

    def _tree(self, home: Path) -> Path:
        return home / "server"

    @contextmanager
    def _fetched(self, beside: Path) -> Iterator[Path]:
        """The archive, unchecked, until the block ends."""
        group, name, version, *classifier = self.coordinate.split(":")
        named = "".join(f' m:classifier="{each}"' for each in classifier)
        (ivy,) = (spark_home() / "jars").glob("ivy-*.jar")
        with tempfile.TemporaryDirectory(dir=beside, prefix="fetching-") as directory:
            module, archive = Path(directory) / "ivy.xml", Path(directory) / f"{name}-{version}.tar.gz"
            pattern = archive.with_name("[artifact]-[revision].[ext]")
            module.write_text(_MODULE.format(group=group, name=name, version=version, classifier=named))
            command = [str(this_java().executable), f"-Duser.home={directory}", "-jar", str(ivy), "-warn"]
            command += ["-cache", str(Path(directory) / "cache"), "-ivy", str(module), "-retrieve", str(pattern)]
            done = subprocess.run(command, cwd=directory, capture_output=True, timeout=_FETCH_S, check=False)
            assert archive.is_file(), f"{self.coordinate} was not fetched: {done.stdout[-2000:]!r}"
            yield archive


APICURIO = ServerArchive("io.apicurio:apicurio-registry-app:3.3.3:all")
ZEEBE = ServerArchive("io.camunda:camunda-zeebe:8.6.0")
ARCHIVES = {"apicurio": APICURIO, "zeebe": ZEEBE}


def tree_hash(root: Path) -> str:
    """SHA-256 of a line for each file below a directory, in order."""
    every = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()):
        inside = path.relative_to(root)
        if _WRITTEN not in inside.parts:
            content = f"link to {path.readlink()}" if path.is_symlink() else hashes([path])[path.name]
            every.update(f"{content}  {inside}\n".encode())
    return every.hexdigest()


def _unpacked(archive: Path, tree: Path) -> Path:
    tree.mkdir(mode=0o700)
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    return tree


def _compare(pins: Pins, found: Pins, place: Path) -> None:
    refuse(differences(pins, found), place, f"remove {place.parent} and run again")


def main(verb: str, *arguments: str) -> None:
    if verb == "unpack":
        name, home = arguments
        ARCHIVES[name].unpack(Path(home))
    else:
        (file,) = arguments
        Path(file).write_text(render_lock({each.coordinate: each.fresh_pins() for each in ARCHIVES.values()}))


if __name__ == "__main__":
    main(*sys.argv[1:])

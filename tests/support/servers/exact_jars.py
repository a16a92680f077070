"""Jars by their coordinates alone: nothing that their POMs ask for comes along. Spark's Ivy fetches them.

For jars with a classifier, which Ivy takes where its settings name it, and for connectors whose POMs ask for jars that
a registry lacks. Their hashes are in the lock of all jars, written by hand.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.engine.spark.jvm.jar_lock import check_directory, set_name
from logkeep.engine.spark.jvm.jars import fetched
from logkeep.model.cache import jars_dir

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="exact"/>
  <resolvers>
    <ibiblio name="exact" m2compatible="true" usepoms="false" {root}
             pattern="[organisation]/[module]/[revision]/[artifact]-[revision]{ending}.[ext]"/>
  </resolvers>
</ivysettings>
"""
_MIRROR = re.compile(r"^\s*spark\.jars\.repositories[\s=]+([^\s,]+)", re.MULTILINE)


@dataclass(frozen=True)
class ExactJars:
    """`name`: of their directory in the cache. The lock calls them `group:artifact:version:classifier`."""

    name: str
    coordinates: tuple[str, ...]
    classifier: str = ""

    @property
    def pinned(self) -> str:
        return set_name(f"{each}:{self.classifier or 'jar'}" for each in self.coordinates)

    def files(self, cache: Path) -> list[Path]:
        """From the cache, or from the registry or its mirror."""
        place = jars_dir(cache) / self.name
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._environ() as environ, fetched(self.coordinates, place.parent, environ) as jars:
                check_directory(jars, self.pinned, remedy="use another mirror")
                with suppress(OSError):  # another process was faster
                    jars.rename(place)
        check_directory(place, self.pinned, remedy=f"remove {place}")
        return sorted(place.glob("*.jar"))

    @contextmanager
    def _environ(self) -> Iterator[dict[str, str]]:
        """Variables with which Ivy takes exactly these, from the mirror of its own settings if there is one."""
        own = Path(os.environ.get("SPARK_CONF_DIR", "/nowhere")) / "spark-defaults.conf"
        mirror = _MIRROR.search(own.read_text()) if own.is_file() else None
        root = f'root="{mirror[1]}"' if mirror else ""
        with tempfile.TemporaryDirectory() as directory:
            settings = Path(directory) / "ivysettings.xml"
            settings.write_text(_SETTINGS.format(root=root, ending=f"-{self.classifier}" if self.classifier else ""))
            (Path(directory) / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {settings}\n")
            yield os.environ | {"SPARK_CONF_DIR": directory}

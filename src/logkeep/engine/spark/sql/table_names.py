"""Names of tables in a query: which one Spark misses, and which ones are nearest. Pure.

Spark ignores case in names, and reads `a.b` without backticks as the table b of a database or a data source a.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from logkeep.errors import UsageError

_MOST = 5
_PART = re.compile(r"`((?:[^`]|``)*)`")
_AS_FORMAT = re.compile(r"Failed to find (?:the )?data source: ([^\s.]+)")
_PARAMETERS = ("relationName", "identifier")
_NOT_FOUND = {"TABLE_OR_VIEW_NOT_FOUND", "VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"}


@dataclass(frozen=True)
class TableMissing:
    """A table that a query names, in its parts."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        return ".".join(self.parts)

    def among(self, tables: Collection[str]) -> str | None:
        """The table of this name, without regard to case. Raises UsageError where several differ in case only."""
        if len(self.parts) != 1:
            return None
        fits = [table for table in tables if table.lower() == self.name.lower()]
        if len(fits) > 1:
            raise UsageError(
                f"Spark ignores case, and several topics are called {' and '.join(sorted(fits))}",
                remedy="write: records WHERE topic = '…'",
            )
        return fits[0] if fits else None


def missing_table(condition: str, parameters: Mapping[str, str], text: str) -> TableMissing | None:
    """The table that Spark did not find, by its error; None if the error is another one."""
    if condition.partition(".")[0] in _NOT_FOUND:
        named = next((parameters[name] for name in _PARAMETERS if name in parameters), "")
        parts = _PART.findall(named)
        return TableMissing(tuple(part.replace("``", "`") for part in parts)) if parts else None
    provider = _AS_FORMAT.search(text)
    return TableMissing((provider[1].strip('`"'), "")) if provider else None


def unknown_table(missing: TableMissing, tables: Collection[str]) -> UsageError:
    """Names the nearest tables, as they are written in a query."""
    whole = missing.name.rstrip(".")
    dotted = [t for t in tables if t.lower() == whole.lower() or t.lower().startswith(f"{whole.lower()}.")]
    what = f"there is no table `{whole}`"
    if len(missing.parts) > 1 and dotted:
        names = _listed(dotted[:_MOST])
        return UsageError(f"{what}: a name with a dot needs backticks", remedy=f"write {names}")
    lower = {table.lower(): table for table in tables}
    ends = [t for t in tables if len(missing.parts) > 1 and missing.parts[-1] and t == missing.parts[-1]]
    near = ends or [lower[name] for name in get_close_matches(whole.lower(), lower, _MOST, 0.5)]
    remedy = f"the nearest are: {_listed(near)}" if near else f"there are: {_listed(sorted(tables)[:_MOST])}"
    return UsageError(what, remedy=f"{remedy}; `logkeep_topics` lists the topics" if "records" in tables else remedy)


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)

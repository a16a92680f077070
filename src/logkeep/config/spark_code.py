"""Which Spark settings may name code that Spark runs. Pure.

Java options, jars, listeners, modules, environment variables and class names all end as code in our JVM or in its
workers. A list of such keys is never complete, so a file that the user did not name may only set numbers, sizes, times
and switches, and a few texts that are known to be harmless. Keys with one of the words below are refused in any case:
`5` may be the name of a module.
"""

import re
from collections.abc import Iterable

_CODE_WORDS = re.compile(
    r"options|jars|files|archives|packages|repositories|ivy|plugin|listener|module|python|classpath|librarypath"
    r"|env\.|script|class|extension|catalog|serializer|kryo|codec|provider|factory|manager|hadoop|command|template|image"
    r"|\.home|\.dir|\.path|conf$|impl$",
    re.IGNORECASE,
)
_PLAIN_VALUE = re.compile(r"true|false|-?[0-9]+(\.[0-9]+)?\s*([a-z]{1,3}|%)?", re.IGNORECASE)
"""A switch, a number, a size (`4g`) or a time (`30s`)."""
_PLAIN_TEXTS = frozenset(
    {"spark.app.name", "spark.driver.bindAddress", "spark.driver.host", "spark.log.level", "spark.scheduler.mode",
     "spark.sql.session.timeZone", "spark.yarn.queue", "spark.kubernetes.namespace"}
)  # fmt: skip


def may_name_code(key: str, value: str) -> bool:
    if key in _PLAIN_TEXTS:
        return False
    return bool(_CODE_WORDS.search(key)) or not _PLAIN_VALUE.fullmatch(value.strip())


def refuse_code(pairs: Iterable[tuple[str, str]]) -> str:
    """Why these settings are refused in a file that the user did not name; empty if they are not."""
    named = [key for key, value in pairs if may_name_code(key, value)]
    if not named:
        return ""
    return f"{', '.join(named)} may name code to run, and a file in the working directory must not"

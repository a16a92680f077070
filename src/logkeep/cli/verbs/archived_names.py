"""Names in the repository that a shell can complete: backups, sources, topics of the latest backup.

A shell waits for this and shows no errors: whatever goes wrong, nothing is suggested. Nothing is retried or written.
"""

import re
from collections.abc import Iterable

from logkeep.cli.frame.execute import named_config
from logkeep.cli.frame.world import World
from logkeep.config.load import Flags, load
from logkeep.config.options import CONFIG, REPO, SOURCE
from logkeep.errors import LogkeepError
from logkeep.repository.access import Repository, open_repository
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.access import open_store
from logkeep.store.readonly import ReadOnlyStore

_MOST = 100
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Other text could mean something to the shell."""


def archived_names(kind: str, world: World, flags: Flags) -> list[str]:
    """At most 100 names of this kind: `backups`, newest first, `sources` or `topics`."""
    try:
        settings = load(flags, world.environ, world.places(named_config(CONFIG, flags, world.environ))).settings
        url = settings[REPO]
        if url is None:
            return []
        found = _read(kind, open_repository(ReadOnlyStore(open_store(url))), settings[SOURCE])
        return [name for name in found if _PLAIN.fullmatch(name)][:_MOST]
    except (LogkeepError, OSError):
        return []


def _read(kind: str, repository: Repository, source: str | None) -> Iterable[str]:
    if kind == "sources":
        return repository.sources()
    place = repository.choose(source)
    return _backups(place) if kind == "backups" else _topics(place)


def _backups(place: SourceRef) -> list[str]:
    ids = sorted((entry.id for entry in read_chain(place).completed), reverse=True)
    return ["latest", *map(str, ids)] if ids else []


def _topics(place: SourceRef) -> list[str]:
    """From the manifest: rows of segments need Arrow, which is slow to load."""
    completed = read_chain(place).completed
    if not completed:
        return []
    manifest = read_manifest(place, max(completed, key=lambda entry: entry.id))
    return sorted({cut.log.name for cut in manifest.cut})

"""Creates or opens a repository and chooses a source."""

from dataclasses import dataclass
from datetime import datetime

from logkeep.errors import ObjectMissing, StoreUnsafe, UnknownSource, UsageError
from logkeep.model.ids import source_name
from logkeep.model.time import TokenSource
from logkeep.repository.backups.source import source_names
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import FormatDocument, StoreFacts, create, open_format
from logkeep.store.base import Store


@dataclass(frozen=True)
class Repository:
    """An opened repository."""

    store: Store
    document: FormatDocument
    warnings: tuple[str, ...] = ()

    def place(self, source: str) -> SourceRef:
        return SourceRef(self.store, self.document.repository, source_name(source))

    def sources(self) -> list[str]:
        return source_names(self.store)

    def choose(self, wanted: str | None) -> SourceRef:
        """The source that the user named, or the only one."""
        names = self.sources()
        if wanted is not None and wanted not in names:
            known = f"the sources are: {', '.join(names)}" if names else "there is no source yet"
            raise UnknownSource(f"no source is called {source_name(wanted)!r}; {known}", subject=self.store.url)
        if wanted is None and len(names) != 1:
            what = "there is no source yet" if not names else f"there are {len(names)} sources: {', '.join(names)}"
            raise UnknownSource(what, subject=self.store.url, remedy=_REMEDY if names else "take a first backup")
        return self.place(wanted or names[0])


_REMEDY = "name one with --source"


def open_repository(store: Store) -> Repository:
    """Open a repository. Raises RepositoryMissing, FormatTooNew or Damaged."""
    opened = open_format(store)
    return Repository(store, opened.document, opened.warnings)


def create_repository(store: Store, facts: StoreFacts, now: datetime, tokens: TokenSource) -> Repository:
    """Create a repository at an empty URL. Raises StoreUnsafe if the store has no conditional writes."""
    if not (facts.put_new and facts.replace):
        missing = "put-if-absent" if not facts.put_new else "compare-and-swap"
        raise StoreUnsafe(
            f"the store does not honour {missing}: two writers could commit at the same time",
            subject=store.url,
        )
    _refuse_leftovers(store)
    return Repository(store, create(store, facts, now, tokens))


def _refuse_leftovers(store: Store) -> None:
    """A repository whose format object was lost must not get a new id: its documents would not belong to it."""
    leftover = next((i.name for i in store.list("") if not i.name.startswith(layout.PROBE)), None)
    if leftover is None or _is_there(store, layout.FORMAT):
        return  # with a format object, `create` reports it
    raise UsageError(
        f"it is not empty: it holds {leftover}",
        subject=store.url,
        remedy="choose an empty prefix; if this was a repository, restore logkeep.json or run `logkeep repair`",
    )


def _is_there(store: Store, name: str) -> bool:
    try:
        store.head(name)
    except ObjectMissing:
        return False
    return True

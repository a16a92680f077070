"""Checks before a restore that the objects of a log exist with the recorded sizes.

One listing covers all objects of a log, a thousand at a time; their content is not read.
"""

from collections.abc import Sequence

from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.segments import Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef


class Presence:
    """The objects of some segments of one log. They are listed once, at the first check."""

    def __init__(self, place: SourceRef, segments: Sequence[Segment]) -> None:
        self._place = place
        self._segments = sorted((s for s in segments if s.has_object), key=self._name)
        self._sizes: dict[str, int] | None = None

    def check(self, segment: Segment) -> None:
        """Check one segment. Raises ObjectMissing, and Damaged for another size."""
        if self._sizes is None:
            self._sizes = self._list_sizes()
        name = self._name(segment)
        found = self._sizes.get(name)
        if found is None:
            raise ObjectMissing("the object does not exist", subject=name)
        if found != segment.stored_bytes:
            raise Damaged(f"has {found} bytes instead of {segment.stored_bytes}", subject=name)

    def _name(self, segment: Segment) -> str:
        return layout.segment(self._place.source, segment)

    def _list_sizes(self) -> dict[str, int]:
        """The objects from the first to the last segment; others are not listed."""
        first, last = self._segments[0], self._name(self._segments[-1])
        before = layout.index_of(self._place.source, first.log, first.first, first.token)  # sorts before its log
        sizes: dict[str, int] = {}
        for info in self._place.store.list(layout.log_root(self._place.source, first.log), before):
            if info.name > last:
                break
            sizes[info.name] = info.size
        return sizes

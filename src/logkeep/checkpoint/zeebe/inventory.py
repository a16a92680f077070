"""What a store of Zeebe's backups has: one listing, and every manifest."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from logkeep.checkpoint.zeebe.layouts import CopyPlace, place_of
from logkeep.checkpoint.zeebe.states import BackupState, backup_state, best_state
from logkeep.errors import Damaged, ObjectMissing, UnknownBackup
from logkeep.formats.zeebe.manifests import MAX_MANIFEST, MAX_PARTITIONS, CopyManifest, CopyState, read_manifest
from logkeep.store.base import ObjectInfo, Store


@dataclass(frozen=True)
class ZeebeCopy:
    """One broker's copy of one partition."""

    place: CopyPlace
    manifest: CopyManifest | None
    """None if it is missing or cannot be read; `problem` says why."""
    problem: str
    objects: Mapping[str, ObjectInfo]
    """Its files by the names of their objects."""

    @property
    def state(self) -> CopyState:
        return self.manifest.state if self.manifest is not None else CopyState.DOES_NOT_EXIST

    @property
    def completed(self) -> bool:
        return self.manifest is not None and self.manifest.state is CopyState.COMPLETED

    @property
    def stored_bytes(self) -> int:
        return sum(each.size for each in self.objects.values())


@dataclass(frozen=True)
class ZeebeBackup:
    """All copies of one backup."""

    checkpoint_id: int
    copies: Sequence[ZeebeCopy]

    @property
    def partitions(self) -> int:
        """How many the cluster had, as far as manifests and copies say."""
        said = (copy.manifest.partitions for copy in self.copies if copy.manifest is not None)
        return max((*said, *(copy.place.partition for copy in self.copies)), default=0)

    def of(self, partition: int) -> list[ZeebeCopy]:
        return [copy for copy in self.copies if copy.place.partition == partition]

    def partition_state(self, partition: int) -> CopyState:
        return best_state(copy.state for copy in self.of(partition))

    def unreadable(self, partition: int) -> bool:
        """It has only copies whose manifests cannot be read."""
        found = self.of(partition)
        return bool(found) and all(copy.manifest is None for copy in found)

    @property
    def state(self) -> BackupState:
        numbers = range(1, self.partitions + 1)
        states = [self.partition_state(each) for each in numbers]
        return backup_state(states, unreadable=any(map(self.unreadable, numbers)))

    @property
    def stored_bytes(self) -> int:
        return sum(copy.stored_bytes for copy in self.copies)


@dataclass
class _Found:
    manifest: bool = False
    objects: dict[str, ObjectInfo] = field(default_factory=dict)


def read_inventory(store: Store, only: int | None = None) -> list[ZeebeBackup]:
    """All backups of a store, or `only` one of them, by their ids. Objects of other programs are left out."""
    found: dict[CopyPlace, _Found] = defaultdict(_Found)
    for info in store.list(""):
        place = place_of(info.name)
        if place is None or (only is not None and place.checkpoint_id != only):
            continue
        if info.name == place.manifest:
            found[place].manifest = True
        elif not info.name.startswith("manifests/"):
            found[place].objects[info.name] = info
    return _by_backup(_copy(store, place, copy) for place, copy in sorted(found.items()))


def find_backup(store: Store, text: str) -> ZeebeBackup:
    """The backup with this id, or the `latest` completed one. Raises UnknownBackup."""
    remedy = "`logkeep zeebe list` lists the ids"
    if text == "latest":
        completed = [each for each in read_inventory(store) if each.state is BackupState.COMPLETED]
        if not completed:
            raise UnknownBackup("the store has no completed backup", subject=store.url, remedy=remedy)
        return completed[-1]
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise UnknownBackup(f"{text!r} is not the id of a backup", remedy=remedy)
    found = read_inventory(store, int(text))
    if not found:
        raise UnknownBackup(f"the store has no backup {int(text)}", subject=store.url, remedy=remedy)
    return found[0]


def _by_backup(copies: Iterable[ZeebeCopy]) -> list[ZeebeBackup]:
    grouped: dict[int, list[ZeebeCopy]] = defaultdict(list)
    for copy in copies:
        grouped[copy.place.checkpoint_id].append(copy)
    return [ZeebeBackup(number, found) for number, found in sorted(grouped.items())]


def _copy(store: Store, place: CopyPlace, found: _Found) -> ZeebeCopy:
    if not found.manifest:
        return ZeebeCopy(place, None, "it has files but no manifest", found.objects)
    try:
        manifest = read_manifest(store.get(place.manifest, MAX_MANIFEST), place.manifest)
    except (Damaged, ObjectMissing) as error:
        return ZeebeCopy(place, None, error.what, found.objects)
    return ZeebeCopy(place, manifest, _misplaced(manifest, place), found.objects)


def _misplaced(manifest: CopyManifest, place: CopyPlace) -> str:
    """What a manifest says about itself must be what its name says."""
    said = (manifest.checkpoint_id, manifest.partition, manifest.node)
    if said != (place.checkpoint_id, place.partition, place.node):
        return f"it is the manifest of backup {said[0]}, partition {said[1]}, broker {said[2]}"
    if not manifest.partition <= (manifest.partitions or MAX_PARTITIONS):
        return f"it is of partition {manifest.partition}, but says that there are {manifest.partitions}"
    return ""

"""Reads a whole registry, for a backup, and to compare it with an archived one.

Clients may change the registry while it is read. So its versions are listed before and after; if the two lists differ,
it is read again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from logkeep.errors import ClusterNotReady
from logkeep.kafka.registry.apicurio import export, open_api
from logkeep.kafka.registry.apicurio_export import read_export
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi
from logkeep.kafka.registry.settings import RegistrySettings
from logkeep.kafka.registry.values import ArchivedRegistry, SubjectSetting

_READS: Final = 3


@dataclass(frozen=True)
class CapturedRegistry:
    registry: ArchivedRegistry
    url: str
    export: bytes = b""


def probe(settings: RegistrySettings) -> None:
    """Check that the registry answers. Raises ClusterError."""
    with RegistryClient(settings) as client:
        open_api(client).subjects()


def capture(settings: RegistrySettings) -> CapturedRegistry:
    """Read the whole registry. Raises ClusterError."""
    with RegistryClient(settings) as client:
        return capture_from(open_api(client))


def capture_from(api: ConfluentApi, also: Iterable[str] = ()) -> CapturedRegistry:
    """`also`: subjects whose settings are read although the registry does not list them."""
    return _exported(api) if api.origin == "apicurio" else _read(api, tuple(also))


def _exported(api: ConfluentApi) -> CapturedRegistry:
    """Apicurio's export is made at one moment, and has more than its other answers."""
    data, mode = export(api), api.mode()
    modes = () if mode is None else (SubjectSetting(mode),)
    registry = msgspec.structs.replace(read_export(data), modes=modes)
    return CapturedRegistry(registry, str(api.client.address), data)


def _read(api: ConfluentApi, also: tuple[str, ...]) -> CapturedRegistry:
    for _ in range(_READS):
        listed = api.listing()
        registry = api.read(listed, also)
        if api.listing() == listed:
            return CapturedRegistry(registry, str(api.client.address))
    raise ClusterNotReady(
        "schemas were registered or deleted all the time while it was read",
        subject=str(api.client.address),
        remedy="run again when fewer schemas are registered",
    )

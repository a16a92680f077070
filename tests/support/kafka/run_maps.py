"""Files of run maps, from maps that are not encoded yet."""

from collections.abc import Mapping

from logkeep.formats.run_map.runs import RunMap
from logkeep.formats.run_map.stored import Route, bundle, encode


def encode_all(maps: Mapping[Route, RunMap]) -> bytes:
    return bundle({route: encode(runs) for route, runs in maps.items()})

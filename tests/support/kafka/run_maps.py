"""Files of run maps, from maps that are not encoded yet."""

from collections.abc import Mapping

from logkeep.formats.run_map.file_format import Route, bundle, encode
from logkeep.formats.run_map.runs import RunMap


def encode_all(maps: Mapping[Route, RunMap]) -> bytes:
    return bundle({route: encode(runs) for route, runs in maps.items()})

"""Archives that OSO's crate wrote, see `make_oso`: every later release reads them, record by record."""

import pytest

from logkeep.kafka.importing.reader import ReadNotes
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.store.local.store import LocalStore
from tests.golden.make_oso import CODECS, GROUP, PLACE, TOPIC, Golden, records
from tests.support.kafka.arrow_samples import rows_of


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_crate_wrote_is_read(codec: str) -> None:
    reader, notes = open_dataset(LocalStore(PLACE / codec)), ReadNotes()
    rows = rows_of(list(reader.records(TOPIC, 0, 0, notes)))
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert [_golden(row) for row in rows] == list(records())
    assert (notes.doubts, notes.lost) == ((), [])
    assert reader.groups == {GROUP: {(TOPIC, 0): 7}}


def _golden(row: tuple[object, ...]) -> Golden:
    _, _, key, value, time_ms, headers = row
    assert isinstance(headers, list)
    return key, value, time_ms, [(name.decode(), content) for name, content in headers]  # type: ignore[return-value]

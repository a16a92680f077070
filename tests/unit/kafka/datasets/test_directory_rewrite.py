"""`--rewrite` in a directory whose file system exchanges two names in two steps only: killed between them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets import rewrite
from logkeep.kafka.record.dataset_document import DatasetLog
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows

LOG = DatasetLog("o", 0)


def without_exchange(patch: pytest.MonkeyPatch) -> None:
    """A C library without `renameat2`."""
    patch.setattr(rewrite, "ctypes", SimpleNamespace(CDLL=lambda *_, **__: SimpleNamespace()))


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("again", [(), ("o",)])
@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro", "parquet"])
def test_the_old_topic_takes_its_place_again(
    form: str, again: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run deleted it together with the new one: records that the source had no longer were lost."""
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("o", 0, 0, 9), *range(9))
    later = ListedSource(exportable_logs(exportable("o", 0, 5, 9)), {LOG: rows(*range(5, 9))})
    renamed, rename = list[str](), os.rename

    def killed(source: str, to: str, **more: int) -> None:
        if source == "o" and renamed:
            raise KilledError
        renamed.extend([source] if source == "o" else [])
        rename(source, to, **more)

    with monkeypatch.context() as patched:
        without_exchange(patched)
        patched.setattr("logkeep.kafka.datasets.rewrite.os.rename", killed)
        with pytest.raises(KilledError):
            exports.run(later, "o")
    assert renamed == ["o"]
    exports.run(later, *again)
    assert [each.records for each in read_back(exports.target)] == [4 if again else 9]
    assert not (tmp_path / "d" / ".logkeep" / "rewrite").exists()


@pytest.mark.parametrize("form", ["kafka-backup-v1", "avro"])
def test_an_exchange_in_two_steps(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = ListedExports(tmp_path / "d", form)
    exports.add(exportable("o", 0, 0, 9), *range(9))
    without_exchange(monkeypatch)
    exports.run(ListedSource(exportable_logs(exportable("o", 0, 5, 9)), {LOG: rows(*range(5, 9))}), "o")
    assert [each.records for each in read_back(exports.target)] == [4]
    assert not (tmp_path / "d" / ".logkeep" / "rewrite").exists()

"""`kafka fold` asks on a terminal, and does what it has shown there."""

import io
import os
from pathlib import Path

import pytest

from logkeep.cli.frame import execute
from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.places import NOWHERE
from logkeep.kafka.fold import run
from logkeep.kafka.fold.plan import KeptBackup
from logkeep.model.cache import cache_dir
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.whole_backups import new_place


@pytest.mark.parametrize(("reply", "code", "logs"), [("y\n", 0, 1), ("n\n", 3, 0)])
def test_one_plan_is_shown_and_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str, code: int, logs: int
) -> None:
    source = CompactedSource(new_place(tmp_path / "repo"))
    source.write([(b"k", b"%d" % n) for n in range(9)])
    source.write([(b"last", b"1")])
    source.back_up()
    read, plans = run.read_kept, list[int]()

    def counted(place: SourceRef, folded: Folded) -> list[KeptBackup]:
        plans.append(folded.generation)
        return read(place, folded)

    monkeypatch.setattr(run, "read_kept", counted)
    out, err, look = io.StringIO(), io.StringIO(), TerminalStyle()
    console = Console(out, err, look=look, err_look=look, interactive=True, read=io.StringIO(reply))
    monkeypatch.setattr(execute, "standard_console", lambda *_, **__: console)
    cache = str(cache_dir(os.environ, Path.home()))
    known = {"LOGKEEP_REPO": f"file://{tmp_path / 'repo'}", "HOME": str(tmp_path), "LOGKEEP_CACHE_DIR": cache}
    assert call(["kafka", "fold", "--engine", "inline"], World(known, console, lambda _: NOWHERE)) == code
    assert "fold 1 log of prod? [y/N]" in err.getvalue()
    assert len(plans) == 1
    assert len(read_chain(source.place).folded_logs()) == logs
    assert ("10 records became 2" in out.getvalue()) is (code == 0)

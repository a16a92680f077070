"""Write the golden repository of the present format: `python -m tests.golden.make_repository v2` for a new one.

Refuses to overwrite: what an earlier release wrote is never written again.
"""

import json
import socket
import sys
import tarfile
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from logkeep.engine.inline import InlineEngine
from logkeep.repository.access import create_repository
from logkeep.repository.backups.backup import begin
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.actions import HoldAction
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.upkeep.prune import delete
from logkeep.store.local.store import LocalStore
from tests.support.scripted.backup import back_up

HERE = Path(__file__).parent / "repository"
socket.gethostname = lambda: "golden"  # requests and leases name their host; a file for ever names no machine


def main(version: str) -> None:
    target = HERE / f"{version}.tar.xz"
    if target.exists():
        sys.exit(f"{target} exists and is never written again")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / version
        story = fill(root)
        with tarfile.open(target, "w:xz", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(root.rglob("*")):
                if path.is_file() and not path.relative_to(root).parts[0].startswith("."):
                    tar.add(path, f"{version}/{path.relative_to(root)}", filter=_anonymous)
    (HERE / f"{version}.json").write_text(json.dumps(story, indent=2) + "\n")


def fill(root: Path) -> dict[str, object]:
    """70 backups (so that a checkpoint is written), a failed one, deletions, a hold."""
    moment, numbers = datetime(2026, 11, 15, 10, 30, tzinfo=UTC), count(1)

    def token() -> str:
        return f"{next(numbers):016x}"

    def clock() -> datetime:
        return moment

    store = LocalStore(root)
    store.create()
    repository = create_repository(store, StoreFacts(True, True, True), moment, token)
    place = repository.place("prod")
    ends: dict[int, dict[int, int]] = {}
    for number in range(70):
        moment += timedelta(hours=1)
        wanted = {0: 3 * number + 1, 1: 9} | ({2: 7} if number > 40 else {})
        ends[back_up(place, wanted, InlineEngine(), clock, token).id] = wanted
    moment += timedelta(hours=1)
    with writing(place, "backup", clock, token) as session:
        failed = begin(session, ensure_source(place, "scripted", {"id": "s-1"}, moment))
        failed.fail("the source went away")
    kept = [*sorted(ends)[:3], *sorted(ends)[-3:]]
    with writing(place, "delete", clock, token) as session:
        delete(session, [i for i in ends if i not in kept], "made for the tests")
    pin(place, HoldAction(kept[0], "golden"), clock, token)
    return {
        "repository": repository.document.repository,
        "completed": [{"id": i, "hold": "golden" if i == kept[0] else None, "ends": ends[i]} for i in kept],
        "failed": [[failed.id, "the source went away"]],
    }


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    return info


if __name__ == "__main__":
    main(sys.argv[1])

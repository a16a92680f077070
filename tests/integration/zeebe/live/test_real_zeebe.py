"""A real Zeebe 8.6.0: backups under load, archived, exported, restored by Zeebe itself; outages, damage, old histories.

The tests depend on one another, in this order: all are about one cluster.
"""

import random
import shutil
import time
from pathlib import Path

import pytest

from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.take.management import Management, ManagementAnswer
from logkeep.checkpoint.zeebe.take.rules import BeforeRequest, clock_of, other_history
from logkeep.checkpoint.zeebe.take.run import Take, TakeLimits, Waiting
from logkeep.checkpoint.zeebe.verify import verify_backup
from logkeep.engine.inline import InlineEngine
from logkeep.errors import BackupFailed
from logkeep.model.findings import Severity
from logkeep.model.time import utc_now
from logkeep.model.work import NoProgress
from logkeep.store.access import open_store
from tests.soak_counts import soak_count
from tests.support.servers.s3 import S3Server, seaweed
from tests.support.servers.zeebe import Zeebe
from tests.support.zeebe.live_world import BUCKET, LiveWorld, note
from tests.support.zeebe.workflows import Workflows

pytestmark = [pytest.mark.zeebe, pytest.mark.timeout(1800)]
BACKUPS = soak_count(10)
FLIPS = 1000
SNAPSHOTS = {3, 7}
"""Before which backups all partitions take one."""


def test_ten_backups_under_load_are_consistent(world: LiveWorld) -> None:
    world.logkeep("init", "-r", str(world.directory / "repo"))
    ends, proven = dict[int, int](), 0
    with Workflows(world.broker.gateway) as work:
        work.deploy()
        with work.load("order"):
            for number in range(BACKUPS):
                if number in SNAPSHOTS:
                    world.management.take_snapshots()
                before = set(work.accepted)
                arguments = ("--management", world.broker.management_url, "--store", world.store)
                found = world.logkeep("zeebe", "backup", *arguments)
                assert found["verdict"] == "good", found
                assert found["cut"]["orphans"] == 0
                proven += found["cut"]["proven"]
                world.taken.append(found["id"])
                world.before[found["id"]], ends[found["id"]] = before, len(work.begun)
                # After a snapshot, what is behind the backup before may be gone: on a busy machine the log grows by a
                # whole segment of 4 MB meanwhile.
                assert not _imported(world, found["id"])["new_history"] or number in SNAPSHOTS
    world.after = {number: set(work.begun[end:]) for number, end in ends.items()}
    note(f"{len(world.taken)} backups, {len(work.accepted)} orders, {proven} commands between partitions proven")
    assert len(world.taken) == BACKUPS
    assert proven > 0


def _imported(world: LiveWorld, number: int) -> dict[str, object]:
    repository = ("-r", str(world.directory / "repo"), "--source", "zeebe")
    return dict(world.logkeep("zeebe", "import", str(number), "--store", world.store, *repository))


def test_falsified_cuts_are_found(world: LiveWorld) -> None:
    """A partition of a later backup under the id of an earlier one."""
    root = world.directory / "falsified"
    for early, late in zip(world.taken[:3], world.taken[4:7], strict=True):
        shutil.rmtree(root, ignore_errors=True)
        for number in (early, late):
            world.logkeep("zeebe", "export", str(number), *_repository(world), "--to", str(root), "--layout", "s3")
        shutil.rmtree(root / "1" / str(early))
        shutil.copytree(root / "1" / str(late), root / "1" / str(early))
        manifest = root / "1" / str(early) / "0" / "manifest.json"
        manifest.write_bytes(manifest.read_bytes().replace(str(late).encode(), str(early).encode()))
        world.logkeep("zeebe", "verify", str(early), "--store", str(root), expected=10)


def _repository(world: LiveWorld) -> tuple[str, ...]:
    return ("-r", str(world.directory / "repo"), "--source", "zeebe")


def test_missing_cut_and_flipped_objects_are_named(world: LiveWorld) -> None:
    number, client = world.taken[-1], world.server.client()
    listed = client.list_objects_v2(Bucket=BUCKET, Prefix=f"2/{number}/0/segments/")["Contents"]
    name = min(each["Key"] for each in listed)
    whole = client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
    flipped = bytearray(whole)
    flipped[5000] ^= 1
    for damaged in (None, whole[:5000], bytes(flipped)):
        if damaged is None:
            client.delete_object(Bucket=BUCKET, Key=name)
        else:
            client.put_object(Bucket=BUCKET, Key=name, Body=damaged)
        found = world.logkeep("zeebe", "verify", str(number), "--store", world.store, expected=10)
        assert any(each["where"] == name for each in found["findings"]), found["findings"]
        state = world.management.call(f"backups/{number}")[1]["state"]
        note(f"Zeebe still says {state}")
        assert state == "COMPLETED"
    client.put_object(Bucket=BUCKET, Key=name, Body=whole)
    world.logkeep("zeebe", "verify", str(number), "--store", world.store)


def test_a_store_that_is_down_burns_an_id_and_it_is_reported(world: LiveWorld) -> None:
    class Cut(Management):
        """The store goes down between the listing and the request."""

        def take(self, number: int) -> ManagementAnswer:
            world.switch.off()
            return super().take(number)

    waiting = Waiting(utc_now, time.monotonic, time.sleep)
    take = Take(Cut(world.broker.management_url), set, waiting, NoProgress())
    number = world.taken[-1] + 1
    with pytest.raises(BackupFailed, match=f"id {number} is lost") as raised:
        take.run(number, TakeLimits(20.0))
    note(f"outage at POST {number}: exit {raised.value.exit_code}: {raised.value.what}")
    arguments = ("--management", world.broker.management_url, "--store", world.store)
    refused = world.logkeep("zeebe", "backup", *arguments, expected=51)
    assert "Zeebe answers 500" in str(refused)
    world.switch.on()
    world.logkeep("zeebe", "backup", *arguments, "--id", str(number), expected=40)
    assert world.logkeep("zeebe", "backup", *arguments)["id"] > number


def test_zeebe_restores_what_was_exported(world: LiveWorld) -> None:
    restored, abandoned = world.taken[-2], world.taken[-1]
    with seaweed(world.directory / "other") as server:
        server.make_bucket("restored")
        _restored(world, server, restored, abandoned)


def _restored(world: LiveWorld, server: S3Server, restored: int, abandoned: int) -> None:
    """A server of its own: the first one has no space for another bucket."""
    target = server.url("restored")
    for number in (restored, abandoned):
        world.logkeep("zeebe", "export", str(number), *_repository(world), "--to", target)
    world.broker.__exit__()
    second = Zeebe(world.directory / "second", server.endpoint, "restored")
    code = second.restore(restored)
    note(f"bin/restore --backupId={restored}: exit {code}")
    assert code == 0
    with second as broker, Workflows(broker.gateway) as work:
        offered = _offered(work, world.before[restored])
        early, late = world.before[restored] - set(offered), world.after[restored] & set(offered)
        note(f"{len(world.before[restored])} orders before, {len(offered)} offered; lost {early}, from later {late}")
        assert not early
        assert not late
        for number in range(5):
            work.order(f"new-{number}")
        fresh = _offered(work, {f"new-{number}" for number in range(5)})
        assert {f"new-{number}" for number in range(5)} <= set(fresh)
        for job in fresh.values():
            work.finish(job)
        _old_history(world, broker, target, abandoned)


def _offered(work: Workflows, wanted: set[str]) -> dict[str, int]:
    """Jobs until all that are wanted are there: messages on their way are delivered after the restart."""
    offered, deadline = dict[str, int](), time.monotonic() + 120
    while True:
        found = work.jobs("order")
        offered |= found
        if (not found and wanted <= offered.keys()) or time.monotonic() > deadline:
            return offered


def _old_history(world: LiveWorld, broker: Zeebe, target: str, abandoned: int) -> None:
    """The store has a backup of the past that was left: Zeebe calls it completed."""
    arguments = ("--management", broker.management_url, "--store", target)
    world.logkeep("zeebe", "backup", *arguments, "--id", str(abandoned), expected=40)
    management = Management(broker.management_url)
    management.backups()
    before = BeforeRequest(clock_of(management.partitions()))
    note(f"POST {abandoned}: {management.take(abandoned).status}")
    status = management.status(abandoned)
    assert status is not None
    assert status.state == "COMPLETED"
    reasons = other_history(status, before, management.partitions())
    note(f"another history: {reasons}")
    assert reasons
    fresh = world.logkeep("zeebe", "backup", *arguments)
    imported = world.logkeep("zeebe", "import", str(fresh["id"]), "--store", target, *_repository(world))
    assert imported["new_history"]


def test_every_flipped_bit_is_found(world: LiveWorld) -> None:
    root, number = world.directory / "flips", world.taken[0]
    world.logkeep("zeebe", "export", str(number), *_repository(world), "--to", str(root), "--layout", "s3")
    files, chance, missed = [p for p in sorted(root.rglob("*")) if _hashed(p)], random.Random(8), list[str]()
    engine = InlineEngine()
    for _ in range(FLIPS):
        path = chance.choice(files)
        whole = path.read_bytes()
        bit = chance.randrange(8 * len(whole))
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        store = open_store(str(root))
        found = verify_backup(store, find_backup(store, str(number)), engine)
        if not any(each.severity is Severity.DAMAGE for each in found.findings):
            missed.append(f"{path} bit {bit}")
        path.write_bytes(whole)
    note(f"{FLIPS} bits flipped in {len(files)} files, {len(missed)} not found {missed[:3]}")
    assert not missed


def _hashed(path: Path) -> bool:
    return path.is_file() and path.name != "manifest.json" and not path.name.endswith(".checksum")

"""Every store and every wrapper keeps every promise; the server that does not is found out."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from logkeep.errors import AlreadyExists, ObjectMissing, StoreDenied, StoreFull, StoreLocationMissing, UnsafeName
from logkeep.model.time import random_token, utc_now
from logkeep.store.access import open_store
from logkeep.store.base import ObjectMetadata, Store
from logkeep.store.below import StoreBelow
from logkeep.store.conformance.checks import CHECKS, StoreCheck, run_checks
from logkeep.store.conformance.probe import VERSIONS, ProbeReport, ProbeResult, probe
from logkeep.store.conformance.trial import QUICK, Scale
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.retrying import RetryingStore
from logkeep.store.throttled import ThrottledStore, TokenBucket
from tests.support.cli.in_process import Here
from tests.support.datasets.oso_files import write_archive
from tests.support.datasets.trivadis_files import write_bucket
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.metered_store import MeteredStore
from tests.support.servers.s3 import ENVIRONMENT, S3Server, moto_server, rclone_s3, seaweed

# SeaweedFS makes losers of a race wait for a second or more; moto takes 10 ms for each object. The full counts of both
# are soak tests.
_FULL = Scale(keys=1_205, racers=32, races=3, stream_bytes=21 << 20)
_SEAWEED = Scale(keys=1_205, racers=8, races=1, stream_bytes=21 << 20)
_MOTO = Scale(keys=30, racers=8, races=2, stream_bytes=12 << 20)
_PROBED = Scale(keys=10, racers=8, races=1, stream_bytes=QUICK.stream_bytes)
_WRAPPED = Scale(keys=50, racers=8, races=2, stream_bytes=12 << 20)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, S3Server]]:
    with ExitStack() as stack:
        started = [
            stack.enter_context(start(tmp_path_factory.mktemp("s3"))) for start in (seaweed, moto_server, rclone_s3)
        ]
        for server in started:
            server.make_bucket("conformance")
        yield {server.kind: server for server in started}


def _local(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "root")
    store.create()
    return store


def _assert_kept(store: Store, check: StoreCheck, scale: Scale) -> None:
    prefix = f"t{random_token()}/"
    (outcome,) = run_checks(store, prefix, utc_now, scale, (check,))
    assert outcome.problem is None
    assert list(store.list(prefix)) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
class TestEveryPromise:
    def test_directory(self, check: StoreCheck, tmp_path: Path) -> None:
        _assert_kept(_local(tmp_path), check, _FULL)
        assert {path.name for path in (tmp_path / "root").iterdir()} <= {".partial"}

    def test_memory(self, check: StoreCheck) -> None:
        _assert_kept(MemoryStore(), check, _FULL)

    @pytest.mark.xdist_group("s3")
    def test_seaweed(self, check: StoreCheck, servers: dict[str, S3Server]) -> None:
        _assert_kept(open_store(servers["seaweed"].url("conformance", "some/prefix")), check, _SEAWEED)

    @pytest.mark.xdist_group("s3")
    def test_moto(self, check: StoreCheck, servers: dict[str, S3Server]) -> None:
        _assert_kept(open_store(servers["moto"].url("conformance")), check, _MOTO)

    @pytest.mark.soak
    @pytest.mark.xdist_group("s3")
    def test_servers_at_full_count(self, check: StoreCheck, servers: dict[str, S3Server]) -> None:
        for kind in ("seaweed", "moto"):
            _assert_kept(open_store(servers[kind].url("conformance", "full")), check, _FULL)

    def test_retrying(self, check: StoreCheck, tmp_path: Path) -> None:
        _assert_kept(RetryingStore(_local(tmp_path)), check, _WRAPPED)

    def test_below_a_prefix(self, check: StoreCheck, tmp_path: Path) -> None:
        _assert_kept(StoreBelow(_local(tmp_path), "some/where/"), check, _WRAPPED)

    def test_metered(self, check: StoreCheck, tmp_path: Path) -> None:
        _assert_kept(MeteredStore(_local(tmp_path)), check, _WRAPPED)

    def test_throttled(self, check: StoreCheck, tmp_path: Path) -> None:
        fast = TokenBucket(10**12)
        _assert_kept(ThrottledStore(_local(tmp_path), upload=fast, download=fast), check, _WRAPPED)

    def test_faulty_without_faults(self, check: StoreCheck) -> None:
        _assert_kept(FaultyStore(MemoryStore()), check, _WRAPPED)


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize("kind", ("seaweed", "moto"))
def test_a_bucket_keeps_metadata_with_the_object(kind: str, servers: dict[str, S3Server]) -> None:
    server, name = servers[kind], f"described/{random_token()}"
    wanted = {"last-offset": "41", "last-time-ms": "-1", "max-time-ms": "1700000000000"}
    store = open_store(server.url("conformance"))
    store.put_new(name, b"an index", wanted)
    assert store.get(name, 100) == b"an index"
    assert server.client().head_object(Bucket="conformance", Key=name)["Metadata"] == wanted
    store.delete(name)


def _copies(store: Store) -> None:
    """What `copy_new` promises; the metadata is checked where a store has some."""
    place = f"copied/{random_token()}"
    store.put_new(f"{place}/a", b"one")
    for again in (b"one", b"two, longer"):  # a copy may be repeated, also after the name was used again
        store.copy_new(f"{place}/a", f"{place}/below/b")
        assert store.get(f"{place}/below/b", 100) == again[: store.head(f"{place}/a").size]
        store.delete(f"{place}/a")
        store.put_new(f"{place}/a", b"two, longer")
    store.delete(f"{place}/a")
    assert store.get(f"{place}/below/b", 100) == b"two, longer"
    with pytest.raises(ObjectMissing):
        store.copy_new(f"{place}/a", f"{place}/c")
    with pytest.raises(UnsafeName):
        store.copy_new(f"{place}/below/b", f"{place}/../c")
    assert [info.name for info in store.list(f"{place}/")] == [f"{place}/below/b"]
    store.delete(f"{place}/below/b")


def test_copies_of_a_directory_and_in_memory(tmp_path: Path) -> None:
    _copies(_local(tmp_path))
    _copies(MemoryStore())
    _copies(StoreBelow(RetryingStore(MemoryStore()), "below/"))
    with pytest.raises(StoreDenied):
        ReadOnlyStore(MemoryStore()).copy_new("a", "b")


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize("kind", ("seaweed", "moto"))
def test_a_bucket_copies_objects_with_their_metadata(
    kind: str, servers: dict[str, S3Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, name = servers[kind], f"copied/{random_token()}"
    store = open_store(server.url("conformance"))
    _copies(store)
    store.put_new(f"{name}/a", b"an index", {"last-offset": "41"})
    store.copy_new(f"{name}/a", f"{name}/b")
    assert server.client().head_object(Bucket="conformance", Key=f"{name}/b")["Metadata"] == {"last-offset": "41"}
    monkeypatch.setattr("logkeep.store.buckets.store._MOST_COPIED_BYTES", 4)  # larger ones go through this process
    _copies(store)


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize("tool", ("kafka-backup-v1", "oso", "trivadis"))
def test_archives_of_other_tools_are_imported_from_a_bucket(
    tool: str, servers: dict[str, S3Server], tmp_path: Path
) -> None:
    records, local = [HandRecord(o, b"k", b"v", 5) for o in range(40)], tmp_path / "archive"
    if tool == "oso":
        write_archive(local, {("orders", 0): [records[:20], records[20:]]})
    elif tool == "trivadis":
        write_bucket(local, {("orders", 0): [records[:20], records[20:]]})
    else:
        write_partition(local, "orders", 0, {0: records[:20], 20: records[20:]})
    url = servers["seaweed"].url("conformance", f"{tool}-{random_token()}")
    store = open_store(url)
    for file in (f for f in local.rglob("*") if f.is_file()):
        store.put_new(str(file.relative_to(local)), file.read_bytes())
    here = Here(tmp_path, ENVIRONMENT)
    here.run("init")
    done = here.json("kafka", "import", url)
    assert (done["format"], done["new_offsets"], done["records"]) == (tool, 40, 40)
    assert here.json("verify", "--level", "records")["verdict"] == "good"


@pytest.mark.xdist_group("s3")
class TestProbe:
    def test_calls_a_good_server_safe(self, servers: dict[str, S3Server]) -> None:
        report = _probed(servers["seaweed"].url("conformance", "probed"))
        assert report.commits_safe
        assert report.lease_safe
        assert report.reasons == ()
        assert _result(report, "transport") is ProbeResult.WARNING
        known = next(check.what for check in report.checks if check.slug == VERSIONS)
        assert known == "versioning is off, and there is no object lock"

    def test_finds_out_the_server_that_overwrites(self, servers: dict[str, S3Server]) -> None:
        report = _probed(servers["rclone"].url("conformance", "probed"))
        assert not report.commits_safe
        assert not report.lease_safe
        for slug in ("put-new-refused", "put-new-race", "replace-stale", "replace-race"):
            assert _result(report, slug) is ProbeResult.FAILED
        assert any("writers won" in reason for reason in report.reasons)
        assert any("use another store" in remedy for remedy in report.remedies)

    def test_init_names_one_cause_and_one_remedy(self, servers: dict[str, S3Server], tmp_path: Path) -> None:
        url = servers["rclone"].url("conformance", "refused")
        done = Here(tmp_path, {**ENVIRONMENT, "LOGKEEP_REPO": url}).run_any("init")
        assert done.code == 40
        doing, *_, error, where, remedy = done.stderr.splitlines()
        assert done.stderr.count("error: ") == 1
        assert doing == f"testing what the store can do: {len(CHECKS)} checks"
        assert error.startswith("error: commits would not be safe here: ")
        assert error.count(": no, ") == 1
        assert error.endswith(" more failed checks)")
        assert url in where
        assert remedy.count(";") == 1

    def test_leaves_nothing_behind(self, servers: dict[str, S3Server]) -> None:
        url = servers["seaweed"].url("conformance", "clean")
        _probed(url)
        assert list(open_store(url).list("")) == []

    def test_shows_the_rule_that_is_missing_and_sees_it_once_set(self, servers: dict[str, S3Server]) -> None:
        server = servers["moto"]
        server.make_bucket("ruled")
        url = server.url("ruled", "backups")
        before = {check.slug: check for check in _probed(url).checks}["unfinished-uploads"]
        assert before.result is ProbeResult.WARNING
        assert "put-bucket-lifecycle-configuration --bucket ruled" in before.remedy
        document = before.remedy.partition("rule.json: ")[2].partition(" then run")[0]
        _set_rule(server, "ruled", document)
        assert _result(_probed(url), "unfinished-uploads") is ProbeResult.PASSED

    def test_check_reports_versions_and_locks(self, servers: dict[str, S3Server], tmp_path: Path) -> None:
        server = servers["moto"]
        server.make_bucket("versioned")
        client = server.client()
        client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
        words = "versions and locks of the bucket: versioning is on, and there is no object lock"
        here = Here(tmp_path, {**ENVIRONMENT, "LOGKEEP_REPO": server.url("versioned")})
        assert words in here.run_any("check").stdout

    def test_a_missing_bucket_is_an_error_and_not_a_report(self, servers: dict[str, S3Server]) -> None:
        for server in servers.values():
            with pytest.raises(StoreLocationMissing):
                _probed(server.url("nosuchbucket"))


def test_probe_of_a_directory_and_of_memory(tmp_path: Path) -> None:
    for store in (_local(tmp_path), MemoryStore()):
        report = probe(store, utc_now, random_token)
        assert report.commits_safe
        assert report.lease_safe
        assert {check.result for check in report.checks} == {ProbeResult.PASSED}


class _Overwriting(MemoryStore):
    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        self.delete(name)
        with suppress(AlreadyExists):  # another writer was between the two
            super().put_new(name, data)


def test_checks_at_the_same_time_find_the_same() -> None:
    done: list[str] = []
    both = [
        run_checks(_Overwriting(), "t/", utc_now, _PROBED, at_once=n, watch=lambda o: done.append(o.check.slug))
        for n in (1, 8)
    ]
    for outcomes in both:
        broken = [outcome.check.slug for outcome in outcomes if outcome.problem]
        assert broken == ["put-new-refused", "put-new-race"]
    assert sorted(done) == sorted([check.slug for check in CHECKS] * 2)


@pytest.mark.parametrize("at_once", (1, 8))
def test_a_full_store_is_one_error_and_the_prefix_is_emptied(at_once: int) -> None:
    memory = MemoryStore()
    full = StoreFull("no space left")

    def plan(number: int, operation: str, _name: str) -> Fault | None:
        return Fault(before=full) if operation == "put_new" and number > 30 else None

    store = FaultyStore(memory, plan)
    with pytest.raises(StoreFull):
        run_checks(store, "t/", utc_now, _PROBED, at_once=at_once)
    assert list(memory.list("")) == []


def _probed(url: str) -> ProbeReport:
    return probe(open_store(url), utc_now, random_token, _PROBED)


def _result(report: ProbeReport, slug: str) -> ProbeResult:
    return {check.slug: check.result for check in report.checks}[slug]


def _set_rule(server: S3Server, bucket: str, document: str) -> None:
    client = server.client()
    client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=json.loads(document))
    client.close()

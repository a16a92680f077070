"""URLs as users type them, and secrets that must go nowhere."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from logkeep.errors import UsageError
from logkeep.store.access import open_store
from logkeep.store.address import Address, StoreKind, parse_address
from logkeep.store.local.store import LocalStore

_CANARY = "CANARY-9f2c"


@pytest.mark.parametrize(
    ("url", "address"),
    (
        ("s3://bucket", Address(StoreKind.S3, "bucket", "")),
        ("s3://bucket/a/b/", Address(StoreKind.S3, "bucket", "a/b")),
        ("S3://bucket/a", Address(StoreKind.S3, "bucket", "a")),
        (
            "s3://bucket/p?endpoint=http://127.0.0.1:9000/&region=eu-central-1",
            Address(StoreKind.S3, "bucket", "p", endpoint="http://127.0.0.1:9000", region="eu-central-1"),
        ),
        (
            "s3://bucket/p?checksum=none",
            Address(StoreKind.S3, "bucket", "p", checksum="none"),
        ),
        ("gs://bucket/p", Address(StoreKind.GCS, "bucket", "p")),
        ("az://container/p?account=name", Address(StoreKind.AZURE, "container", "p", account="name")),
        ("file:///var/lib/x%20y", Address(StoreKind.LOCAL, "", "/var/lib/x y")),
        ("/var/lib/x", Address(StoreKind.LOCAL, "", "/var/lib/x")),
    ),
)
def test_urls_are_understood_and_survive_being_printed(url: str, address: Address) -> None:
    assert parse_address(url) == address
    assert parse_address(address.url) == address
    assert pickle.loads(pickle.dumps(address)) == address  # noqa: S301  # our own bytes


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_address("repo").prefix == str(tmp_path / "repo")
    assert parse_address("./repo").url == (tmp_path / "repo").as_uri()


@pytest.mark.parametrize(
    "url",
    (
        f"s3://user:{_CANARY}@bucket/p",
        f"s3://{_CANARY}@bucket/p",
        f"s3://bucket/p?access_key={_CANARY}",
        f"s3://bucket/p?secret_access_key={_CANARY}",
        f"s3://bucket/p?session_token={_CANARY}",
        f"s3://bucket/p?X-Amz-Signature={_CANARY}",
        f"az://container/p?sig={_CANARY}",
        f"az://container/p?sas={_CANARY}",
        f"az://container/p?password={_CANARY}",
        f"s3://bucket/p?endpoint=https://user:{_CANARY}@host",
        f"s3://bucket/p?endpoint=https://host%3Ftoken={_CANARY}",
        f"file://user:{_CANARY}@host/dir",
    ),
)
def test_a_credential_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert _CANARY not in f"{caught.value} {caught.value.remedy} {caught.value!r}"
    assert "credential" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "says"),
    (
        ("s3://bucket/p?regoin=x", "did you mean region"),
        ("az://container/p?acount=x", "did you mean account"),
        ("s3://bucket/p?colour=x", "knows endpoint, region"),
        ("file:///dir?region=x", "knows no options"),
    ),
)
def test_an_unknown_option_comes_with_a_hint(url: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert says in caught.value.remedy


@pytest.mark.parametrize(
    "url",
    (
        *(
            "",
            "s3://",
            "s3:///p",
            "ftp://host/x",
            "memory://x",
            "s3://bucket/../x",
            "s3://bucket/a//b",
            "s3://bucket/a b",
        ),
        *("s3://bucket/" + "x" * 200, "s3://bucket#f", "s3://bucket?region=a&region=b", "s3://bucket?region=a/b"),
        *("s3://bucket?endpoint=host:9000", "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://h:99999"),
        *("file://host/dir", "az://container?account=UPPER"),
    ),
)
def test_nonsense_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError):
        parse_address(url)


def test_plain_http_is_noticed() -> None:
    assert not parse_address("s3://bucket?endpoint=http://host").encrypted_transport
    assert parse_address("s3://bucket?endpoint=https://host").encrypted_transport
    assert parse_address("s3://bucket").encrypted_transport


def test_opening_a_directory_loads_no_heavy_library(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert isinstance(store, LocalStore)
    assert store.url == tmp_path.as_uri()
    script = (
        "import sys; from logkeep.store.access import open_store; open_store(sys.argv[1]);"
        "print(*{'obstore', 'stamina', 'boto3', 'botocore'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("url", ("gs://bucket/p", "az://container/p?account=name", "s3://bucket/p?region=us-east-1"))
def test_every_cloud_can_be_opened_without_asking_it(url: str) -> None:
    assert open_store(url).url == url

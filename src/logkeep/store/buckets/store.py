"""The store in S3, Google Cloud Storage and Azure, through obstore. Only this module and `object_errors` import it.

Behaviour of obstore 0.12, and how it is handled here:
- it repeats a conditional put after a 5xx, so a write whose reply was lost would look like that of another writer: puts
  use a client that never retries. Streams use one that does, because a part may be sent twice;
- a stream refers to the caller's buffer after `write` returned: bytes are copied first;
- a stream is aborted on the server only by leaving its `with` block with an error; otherwise its parts stay;
- some servers list directory by directory (`a/b` before `a-b`) and continue in that order: names of custom endpoints
  are sorted here, and no listing is continued from a point where the two orders differ.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from logkeep.errors import ConfigError, Damaged, ObjectMissing, StoreError, UnsafeName, VersionMismatch
from logkeep.model.process_memory import hide_memory
from logkeep.store.address import Address, StoreKind
from logkeep.store.base import LONGEST_REQUEST_S, Abilities, ObjectInfo, ObjectMetadata, safe_name, safe_prefix
from logkeep.store.buckets.aws_files import file_credentials
from logkeep.store.buckets.object_errors import translated
from logkeep.store.buckets.upload_memory import OF_THIS_PROCESS, PartsInFlight

if TYPE_CHECKING:
    from obstore import ObjectMeta, UpdateVersion, WritableFile
    from obstore.store import ClientConfig, RetryConfig

_PART_BYTES = 8 << 20
_MOST_PARTS = 9_000
"""S3 allows 10,000; the rest is left for hints that were too small."""
_MOST_COPIED_BYTES = 5 << 30
"""S3 copies no larger object in one request."""
_ONCE: "RetryConfig" = {"max_retries": 0}
_PATIENT: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
_OBSTORE_RAISES = (BaseError, OSError, ValueError)

Client = S3Store | GCSStore | AzureStore
_CLIENTS: dict[StoreKind, Any] = {StoreKind.S3: S3Store, StoreKind.GCS: GCSStore, StoreKind.AZURE: AzureStore}
Names = list[str]  # inside the class `list` is the method


class ObjectStore:
    """A bucket or container and a prefix. Picklable: a copy opens its own connections from the same address."""

    abilities = Abilities(put_new=True, replace=True, durable=True)

    def __init__(self, address: Address) -> None:
        self.address = address
        self._client = _connected(address, _ONCE)

    def __reduce__(self) -> tuple[type["ObjectStore"], tuple[Address]]:
        return ObjectStore, (self.address,)

    @property
    def url(self) -> str:
        return self.address.url

    @cached_property
    def _streams(self) -> Client:
        return _connected(self.address, _PATIENT)

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        attributes = dict(metadata) if metadata else None
        with _obstore_errors(self.url, safe_name(name)):
            obstore.put(self._client, name, data, mode="create", use_multipart=False, attributes=attributes)

    def replace(self, name: str, data: bytes, version: str) -> None:
        try:
            with _obstore_errors(self.url, safe_name(name)):
                obstore.put(self._client, name, data, mode=_expected(version), use_multipart=False)
        except VersionMismatch:
            self.head(name)  # servers give the same reply for a missing object: this raises ObjectMissing
            raise

    def open_new(self, name: str, size_hint: int = 0) -> "ObjectStream":
        part_bytes = max(_PART_BYTES, -(-size_hint // _MOST_PARTS))
        with _obstore_errors(self.url, safe_name(name)):
            client = self._streams
            memory = OF_THIS_PROCESS.take(part_bytes)
            writer = obstore.open_writer(client, name, buffer_size=part_bytes, max_concurrency=memory.parts)
        return ObjectStream(writer, name, self.url, memory)

    def copy_new(self, name: str, to: str) -> None:
        size = self.head(name).size
        with _obstore_errors(self.url, safe_name(to)):
            if size <= _MOST_COPIED_BYTES:
                obstore.copy(self._client, name, to, overwrite=True)
                return
        self._copy_in_parts(name, to, size)

    def _copy_in_parts(self, name: str, to: str, size: int) -> None:
        """Copy an object through this process, without metadata, which no object of this size has."""
        stream = self.open_new(to, size)
        try:
            for start in range(0, size, _PART_BYTES):
                stream.write(self.get_range(name, start, min(_PART_BYTES, size - start)))
            stream.close()
        except BaseException:
            stream.abort()
            raise

    def get(self, name: str, limit: int) -> bytes:
        return self.get_with_info(name, limit)[0]

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        with _obstore_errors(self.url, safe_name(name)):
            answer = obstore.get(self._client, name)
            info = self._info(answer.meta)
            if info.size > limit:
                raise Damaged(f"it has {info.size} bytes; at most {limit} are allowed", subject=name)
            data = answer.bytes().to_bytes()
        if len(data) != info.size:
            raise Damaged(f"the store sent {len(data)} of {info.size} bytes", subject=name)
        return data, info

    def get_range(self, name: str, start: int, length: int) -> bytes:
        if length == 0:
            return self._empty_range(name, start)
        with _obstore_errors(self.url, safe_name(name)):
            data = obstore.get_range(self._client, name, start=start, length=length).to_bytes()
        if len(data) != length:
            raise Damaged(f"it ends before byte {start + length}", subject=name)
        return data

    def head(self, name: str) -> ObjectInfo:
        try:
            with _obstore_errors(self.url, safe_name(name)):
                return self._info(obstore.head(self._client, name))
        except ObjectMissing:
            self._require_bucket()
            raise

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        found = self._listed(safe_prefix(prefix), after, [] if foreign is None else foreign)
        if self._lists_in_order():
            return _order_checked(found, self.url)
        return iter(sorted(found, key=lambda info: info.name))

    def some(self, prefix: str, most: int) -> Sequence[ObjectInfo]:
        return [*islice(self._listed(safe_prefix(prefix), "", []), most)]

    def delete(self, name: str) -> None:
        with suppress(ObjectMissing), _obstore_errors(self.url, safe_name(name)):
            obstore.delete(self._client, name)

    def _listed(self, prefix: str, after: str, foreign: Names) -> Iterator[ObjectInfo]:
        with _obstore_errors(self.url, self.url):
            pages = obstore.list(self._client, prefix or None, offset=resume_point(prefix, after), chunk_size=1000)
            for page in pages:
                for meta in page:
                    try:
                        name = safe_name(meta["path"])
                    except UnsafeName:
                        foreign.append(meta["path"])
                        continue
                    if name > after:
                        yield self._info(meta)

    def _lists_in_order(self) -> bool:
        """The clouds list in the order of names; other S3 servers may not."""
        return self.address.kind is not StoreKind.S3 or not self.address.endpoint

    def _require_bucket(self) -> None:
        """A HEAD request does not distinguish a missing object from a missing bucket; a listing does."""
        with _obstore_errors(self.url, self.url):
            next(iter(obstore.list(self._client, "logkeep.no-such-name", chunk_size=1)), None)

    def _empty_range(self, name: str, start: int) -> bytes:
        if start > self.head(name).size:
            raise Damaged(f"it ends before byte {start}", subject=name)
        return b""

    def _info(self, meta: "ObjectMeta") -> ObjectInfo:
        generation = (meta["version"] or "") if self.address.kind is StoreKind.GCS else ""
        version = f"{meta['e_tag'] or ''} {generation}".strip()
        return ObjectInfo(name=meta["path"], size=meta["size"], modified=meta["last_modified"], version=version)


class ObjectStream:
    """A multipart upload (or, below one part, a plain put at the end). Memory: the parts that it may have in flight."""

    def __init__(self, writer: "WritableFile", name: str, place: str, memory: PartsInFlight) -> None:
        self._writer: WritableFile | None = writer
        self._memory = memory
        self._name = name
        self._place = place
        self._length = 0

    def write(self, data: memoryview | bytes) -> None:
        owned = data if isinstance(data, bytes) else bytes(data)
        with _obstore_errors(self._place, self._name):
            self._open().write(owned)
        self._length += len(owned)

    def close(self) -> int:
        with _obstore_errors(self._place, self._name):
            self._open().close()
        self._writer = None
        self._memory.release()
        return self._length

    def abort(self) -> None:
        writer, self._writer = self._writer, None
        self._memory.release()
        if writer is not None:
            aborted = StoreError("aborted", subject=self._name)
            with suppress(*_OBSTORE_RAISES):  # otherwise the bucket's lifecycle rule removes the parts
                writer.__exit__(StoreError, aborted, None)

    def _open(self) -> "WritableFile":
        if self._writer is None:
            raise StoreError("the stream is closed", subject=self._name)
        return self._writer


def resume_point(prefix: str, after: str) -> str | None:
    """A name from which a server may continue without skipping anything greater than `after`.

    Servers list by whole names or directory by directory. The orders differ only around `-` and `.`, the characters
    that sort before `/`: what precedes the first of them is safe in both. One character less, because a server that
    walks directories skips the whole directory whose name is the point; all below it must be before `after`.
    """
    if not after.startswith(prefix):
        return None
    point = re.split(r"[-.]", after[len(prefix) :], maxsplit=1)[0].rstrip("/")[:-1]
    while point.endswith("/"):
        point = point[:-2]
    return prefix + point if point else None


def _order_checked(found: Iterator[ObjectInfo], url: str) -> Iterator[ObjectInfo]:
    last = ""
    for info in found:
        if info.name <= last:
            remedy = "name its endpoint in the URL (?endpoint=…): then logkeep sorts the names"
            raise StoreError("the store does not list in the order of names", subject=url, remedy=remedy)
        last = info.name
        yield info


def _expected(version: str) -> "UpdateVersion":
    e_tag, _, generation = version.partition(" ")
    expected: UpdateVersion = {"e_tag": e_tag}
    if generation:
        expected["version"] = generation
    return expected


@contextmanager
def _obstore_errors(place: str, subject: str) -> Iterator[None]:
    """Translate what obstore raises inside the block."""
    try:
        yield
    except _OBSTORE_RAISES as error:
        raise translated(error, subject, place) from None  # obstore's text may contain a signed URL


def _connected(address: Address, retry: "RetryConfig") -> Client:
    prefix = address.prefix or None
    options: ClientConfig = {"connect_timeout": "5s", "read_timeout": "60s", "timeout": f"{LONGEST_REQUEST_S}s"}
    if not address.encrypted_transport:
        options["allow_http"] = True
    common: dict[str, Any] = {"prefix": prefix, "client_options": options, "retry_config": retry}
    try:
        return _client(address, common)
    except _OBSTORE_RAISES:
        remedy = "check account, region and the credentials in the environment; see the reference page of stores"
        raise ConfigError("the store cannot be opened", subject=address.url, remedy=remedy) from None


def _client(address: Address, common: dict[str, Any]) -> Client:
    hide_memory()  # it holds the credentials
    settings: dict[str, Any] = {}
    if address.kind is StoreKind.GCS:
        settings["base_url"] = address.endpoint
    else:
        settings["endpoint"] = address.endpoint
    if address.kind is StoreKind.AZURE:
        settings["account_name"] = address.account
    if address.kind is StoreKind.S3:
        # One DELETE per object: not every S3 server supports the bulk request. Buckets with object lock refuse writes
        # without a checksum. SHA-256 costs nothing more: each request is signed with it already.
        settings |= {"region": address.region, "disable_bulk_delete": True}
        settings["aws_endpoint_url_s3"] = address.endpoint  # AWS_ENDPOINT_URL_S3 would win over `endpoint`
        settings["checksum_algorithm"] = "" if address.checksum == "none" else "SHA256"
        settings |= file_credentials()
    given = {name: value for name, value in settings.items() if value}
    client: Client = _CLIENTS[address.kind](address.bucket, **given, **common)
    return client

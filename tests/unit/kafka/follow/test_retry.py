"""Which errors of a round that follows a cluster are repeated, and what a later round makes of what it knows."""

import socket
import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from logkeep import errors
from logkeep.kafka.backup.values import KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.listener import other_protocol
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.follow.run import FollowedCluster
from logkeep.model.findings import Finding, Severity

CLUSTER = FollowedCluster.__new__(FollowedCluster)
CURED = (
    errors.ClusterUnreachable,
    errors.ClusterNotReady,
    errors.StoreUnreachable,
    errors.StoreBusy,
    errors.StoreFull,
    errors.Locked,
    errors.LeaseLost,
    errors.CommitConflict,
    errors.TaskFailed,
    errors.SourceDamaged,
    errors.TopicMissing,
)
FINAL = (
    errors.AuthenticationFailed,
    errors.NotAuthorised,
    errors.TlsFailed,
    errors.ClusterTooOld,
    errors.ProtocolMismatch,
    errors.UsageError,
    errors.StoreDenied,
    errors.StoreLocationMissing,
    errors.Damaged,
    errors.OldMessageFormat,
    errors.Interrupted,
    errors.Terminated,
)


@pytest.mark.parametrize("kind", CURED)
def test_trouble_that_passes(kind: type[errors.LogkeepError]) -> None:
    assert CLUSTER.retry_cures(kind("it happened"))


@pytest.mark.parametrize("kind", FINAL)
def test_trouble_that_stays(kind: type[errors.LogkeepError]) -> None:
    assert not CLUSTER.retry_cures(kind("it happened"))


class _ReplacedListener:
    """A backup whose cluster answers at first, and whose port is then served in another way."""

    settings = ClientSettings(endpoints("127.0.0.1:1"))

    def __init__(self, answers: int) -> None:
        self._answers = answers

    def prepare(self, _options: object) -> None:
        self.run_if_changed()

    def run_if_changed(self, *_arguments: object) -> None:
        self._answers -= 1
        if self._answers < 0:
            raise other_protocol("127.0.0.1:1", "SASL_SSL", "PLAINTEXT")


def test_another_protocol_ends_the_run_only_at_the_first_contact() -> None:
    first: Any = _ReplacedListener(answers=0)
    with pytest.raises(errors.ProtocolMismatch) as caught:
        FollowedCluster(first, KafkaBackupOptions(), _no_engine, 1.0).round()
    assert (caught.value.exit_code, CLUSTER.retry_cures(caught.value)) == (40, False)
    later: Any = _ReplacedListener(answers=1)
    with pytest.raises(errors.ClusterUnreachable, match="the listener is PLAINTEXT") as retried:
        FollowedCluster(later, KafkaBackupOptions(), _no_engine, 1.0).round()
    assert (retried.value.exit_code, CLUSTER.retry_cures(retried.value)) == (51, True)


class _PlainTextForAWhile:
    """A backup whose TLS port answers at first; then a proxy answers there in plain text."""

    def __init__(self, port: int) -> None:
        self.settings = ClientSettings(endpoints(f"127.0.0.1:{port}"), protocol="SSL")

    def prepare(self, _options: object) -> None: ...

    def run_if_changed(self, *_: object) -> NoReturn:
        with Cluster(self.settings) as cluster:
            cluster.metadata()
        raise AssertionError("no broker is there")


def _answer_in_plain_text(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            made, _ = listener.accept()
            with made:
                made.recv(4096)
                made.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")


def test_a_tls_port_that_answers_in_plain_text_ends_the_run_only_at_the_first_contact() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_in_plain_text, args=(listener,))
        thread.start()
        backup: Any = _PlainTextForAWhile(listener.getsockname()[1])
        try:
            with Cluster(backup.settings) as cluster, pytest.raises(errors.ProtocolMismatch) as first:
                cluster.metadata()
            with pytest.raises(errors.ClusterUnreachable) as retried:
                FollowedCluster(backup, KafkaBackupOptions(), _no_engine, 1.0).round()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    said = "a server without TLS answers, but this client expects an SSL listener of Kafka"
    assert (first.value.what, first.value.exit_code) == (said, 40)
    assert (retried.value.what, CLUSTER.retry_cures(retried.value)) == (said, True)


def _no_engine(_bytes: int) -> NoReturn:
    raise AssertionError("nothing is copied")


class _Suspicious:
    """A backup that finds suspicious deletions in every round that compares; it keeps what it was given."""

    settings = ClientSettings(endpoints("127.0.0.1:1"))

    def __init__(self) -> None:
        self.given: list[set[str]] = []
        self.found = Finding(code="deletions-suspicious", severity=Severity.WARNING, where="users/0", what="many")

    def prepare(self, _options: object) -> None: ...

    def run_if_changed(self, *arguments: Any) -> Any:
        self.given.append(set(arguments[4]))
        facts = SimpleNamespace(topics=(), bounds={})
        return SimpleNamespace(findings=(self.found,), facts=facts, changed=True, logs=())


def test_a_log_with_suspicious_deletions_is_compared_again_after_an_hour() -> None:
    backup: Any = _Suspicious()
    now = [0.0]
    followed = FollowedCluster(backup, KafkaBackupOptions(), _no_engine, 1.0, monotonic=lambda: now[0])
    for now[0] in (0.0, 10.0, 3_599.0, 3_601.0, 3_700.0):
        followed.round()
    assert backup.given == [set(), {"users/0"}, {"users/0"}, set(), {"users/0"}]

"""Exceptions of libraries and of the operating system that reach the frame: none of a user's doing ends with 1."""

import errno
import http.client
import os
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError
from kazoo.exceptions import BadVersionError, ConnectionLoss, NoAuthError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from obstore.exceptions import GenericError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError, PythonException

from logkeep import errors
from logkeep.application.client_errors import client_error
from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.frame.execute import classified
from logkeep.cli.frame.foreign_errors import known_error
from logkeep.errors import LogkeepError


def of_the_system(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))


def in_a_worker(last_line: str) -> PythonException:
    """As Spark raises what a Python worker raised."""
    told = (
        'An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File "x.py", line 1\n'
    )
    return PythonException(told + last_line + "\n")


EXPLAINED: list[tuple[BaseException, type[LogkeepError]]] = [
    (of_the_system(errno.ENOSPC, "/x"), errors.StoreFull),
    (of_the_system(errno.EDQUOT), errors.StoreFull),
    (of_the_system(errno.EFBIG, "/x"), errors.StoreFull),
    (of_the_system(errno.EACCES, "/x"), errors.StoreDenied),
    (of_the_system(errno.EROFS, "/x"), errors.StoreDenied),
    (of_the_system(errno.EROFS), errors.StoreDenied),
    (of_the_system(errno.EISDIR, "/x"), errors.UsageError),
    (of_the_system(errno.ELOOP, "/x"), errors.UsageError),
    (of_the_system(errno.ENOENT), errors.UsageError),
    (of_the_system(errno.EMFILE, "/x"), errors.HostFailed),
    (of_the_system(errno.EMFILE), errors.HostFailed),
    (of_the_system(errno.ENFILE), errors.HostFailed),
    (of_the_system(errno.EIO, "/x"), errors.HostFailed),
    (of_the_system(errno.EIO), errors.HostFailed),
    (of_the_system(errno.ENOMEM), errors.HostFailed),
    (of_the_system(errno.EAGAIN), errors.HostFailed),
    (of_the_system(errno.EADDRINUSE), errors.HostFailed),
    (of_the_system(errno.ECONNREFUSED), errors.ClusterUnreachable),
    (of_the_system(errno.EPIPE), errors.ClusterUnreachable),
    (of_the_system(errno.ENETUNREACH), errors.ClusterUnreachable),
    (of_the_system(errno.ETIMEDOUT), errors.ClusterUnreachable),
    (socket.gaierror(-2, "Name or service not known"), errors.ClusterUnreachable),
    (TimeoutError("timed out"), errors.ClusterUnreachable),
    (ssl.SSLCertVerificationError(1, "certificate verify failed"), errors.TlsFailed),
    (urllib.error.URLError("no route"), errors.ClusterUnreachable),
    (http.client.IncompleteRead(b""), errors.ClusterUnreachable),
    (ConnectionLoss(), errors.ClusterUnreachable),
    (SessionExpiredError(), errors.ClusterUnreachable),
    (KazooTimeoutError("Connection time-out"), errors.ClusterUnreachable),
    (NoAuthError(), errors.NotAuthorised),
    (BadVersionError(), errors.ClusterError),
    (KafkaTimeoutError(), errors.ClusterError),
    (TopicAuthorizationFailedError(), errors.ClusterError),
    (KafkaException(KafkaError(KafkaError._TRANSPORT)), errors.ClusterError),
    (EndpointConnectionError(endpoint_url="http://x"), errors.StoreError),
    (NoCredentialsError(), errors.StoreError),
    (GenericError("HTTP error"), errors.StoreError),
    (Py4JNetworkError("Answer from Java side is empty"), errors.HostFailed),
    (PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={}), errors.HostFailed),
    (in_a_worker("OSError: [Errno 28] No space left on device"), errors.HostFailed),
    (subprocess.TimeoutExpired("java", 10), errors.HostFailed),
    (subprocess.CalledProcessError(1, "java"), errors.HostFailed),
    (sqlite3.OperationalError("disk I/O error"), errors.HostFailed),
    (MemoryError(), errors.HostFailed),
    (ImportError("libarrow.so: failed to map segment from shared object", name="pyarrow.lib"), errors.HostFailed),
    (ModuleNotFoundError("No module named 'boto3'", name="boto3"), errors.HostFailed),
    (RuntimeError("can't start new thread"), errors.HostFailed),
]
FAULTS: list[BaseException] = [
    ValueError("x"),
    KeyError("x"),
    RuntimeError("x"),
    AssertionError(),
    of_the_system(errno.EBADF),
    of_the_system(errno.EINVAL),
    OSError("without a number"),
    ImportError("cannot import name", name="logkeep.cli"),
    in_a_worker("KeyError: 'offset'"),
]


@pytest.mark.parametrize(("error", "kind"), EXPLAINED, ids=lambda each: repr(each)[:60])
def test_what_a_user_a_server_or_a_host_can_cause(error: BaseException, kind: type[LogkeepError]) -> None:
    found = known_error(error)
    assert type(found) is kind
    assert found.exit_code != 1
    assert found.remedy


def test_librdkafka_says_it_in_its_own_words() -> None:
    found = known_error(KafkaException(KafkaError(KafkaError._TRANSPORT, "no broker answers")))
    assert found is not None
    assert found.what == "KafkaException: no broker answers"


@pytest.mark.parametrize("error", FAULTS, ids=repr)
def test_a_fault_of_ours_stays_one(error: BaseException) -> None:
    assert known_error(error) is None


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("insert into t select randomblob(1000000)", errors.StoreFull),
        ("attach '/nowhere/x.db' as other", errors.HostFailed),
    ],
)
def test_sqlite_says_what_happened(tmp_path: Path, statement: str, kind: type[LogkeepError]) -> None:
    database = sqlite3.connect(tmp_path / "small.db")
    database.executescript("create table t (b); pragma max_page_count = 10;")
    with pytest.raises(sqlite3.Error) as caught:
        database.execute(statement)
    database.close()
    assert type(known_error(caught.value)) is kind


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database at all" * 100)
    database = sqlite3.connect(tmp_path / "x.db")
    with pytest.raises(sqlite3.Error) as caught:
        database.execute("select * from t")
    database.close()
    assert type(known_error(caught.value)) is errors.Damaged


@pytest.mark.parametrize("words", [entry.words for entry in VERBS])
@pytest.mark.parametrize("kind", [errors.ClusterError, errors.StoreError, errors.HostFailed, errors.ServerFailed])
def test_no_verb_ends_with_1_for_a_refusal_that_nothing_explains(words: str, kind: type[LogkeepError]) -> None:
    verb = next(entry.load() for entry in VERBS if entry.words == words)

    def refused() -> None:
        raise kind("it refused")

    with pytest.raises(kind) as caught:
        classified(verb.job, refused)
    backs_up, restores = 21 in verb.exits, 30 in verb.exits
    assert caught.value.exit_code != 1
    assert caught.value.exit_code in {20 if backs_up else 0, 30 if restores else 0, kind.exit_code}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, errors.ClusterUnreachable),
        (KafkaError._AUTHENTICATION, errors.AuthenticationFailed),
        (KafkaError._SSL, errors.TlsFailed),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, errors.NotAuthorised),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, errors.NotAuthorised),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, errors.NotAuthorised),
        (KafkaError.POLICY_VIOLATION, errors.ClusterError),
    ],
)
def test_what_an_applications_client_was_told(code: int, kind: type[LogkeepError]) -> None:
    found = client_error(KafkaError(code), "shop.log", "the topic cannot be created")
    assert (type(found), found.subject) == (kind, "shop.log")

"""What a session adds to PySpark's own parts, without a JVM."""

import socket
from typing import Any

import pytest
from pyspark.accumulators import _start_update_server

from logkeep.engine.spark.session import log_connection_errors


def test_a_jvm_that_ends_first_leaves_no_traceback_on_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    """As after a second Ctrl-C: the JVM is killed before PySpark has closed its server of counters."""
    counters = _start_update_server("token", False)
    log_connection_errors(counters)
    with _connected(counters):
        pass
    with _connected(counters):  # it serves one connection after the other: the first one has ended
        counters.shutdown()
    assert capfd.readouterr() == ("", "")


def _connected(counters: Any) -> socket.socket:
    """A JVM that has reported once, and whose report was acknowledged."""
    jvm = socket.create_connection(counters.server_address)
    jvm.sendall(b"token" + bytes(4))
    assert jvm.recv(1) == b"\x01"
    return jvm

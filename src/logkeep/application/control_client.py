"""A client of a running application's control socket, and what a coordinator needs of the application through it."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from logkeep.application.control import AnswersRequest, ControlRequest, CreateRequest, SendRequest, reachable
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.errors import ClusterError, ClusterUnreachable, UsageError

_ANSWER_S = 60.0
_MOST_ANSWER_BYTES = 64 << 20
"""The data directory may belong to another user, who then decides what answers."""


class _Refusal(msgspec.Struct):
    what: str
    remedy: str
    code: int


class _Response(msgspec.Struct):
    reply: Any = None
    facts: ApplicationFacts | None = None
    answers: dict[int, CheckpointDocument] = {}
    error: _Refusal | None = None


class ControlClient:
    """See `ApplicationPort`; also sends commands. Each call is a connection of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, sent: SendRequest) -> object:
        """The reply to a command. Raises UsageError, ClusterError."""
        return self._call(ControlRequest(send=sent), sent.timeout_s + _ANSWER_S).reply

    def facts(self) -> ApplicationFacts:
        found = self._call(ControlRequest(facts={})).facts
        if found is None:
            raise ClusterError(
                "the answer of the application lacks its name and its partitions", subject=str(self._directory)
            )
        return found

    def create(self, partition: int, document: CheckpointDocument) -> None:
        self._call(ControlRequest(create=CreateRequest(partition, document)))

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        return self._call(ControlRequest(answers=AnswersRequest(checkpoint_id))).answers

    def _call(self, request: ControlRequest, timeout_s: float = _ANSWER_S) -> _Response:
        try:
            line = self._exchange(msgspec.json.encode(request) + b"\n", timeout_s)
        except OSError as error:
            remedy = "start it: `python PROGRAM run --data DIR`"
            raise ClusterUnreachable(
                "the application does not answer", subject=str(self._directory), remedy=remedy
            ) from error
        try:
            response = msgspec.json.decode(line, type=_Response, strict=False)
        except msgspec.MsgspecError as error:
            raise ClusterUnreachable("the application ended during the call", subject=str(self._directory)) from error
        if response.error is not None:
            kind = UsageError if response.error.code == UsageError.exit_code else ClusterError
            found = kind(response.error.what, remedy=response.error.remedy)
            found.exit_code = response.error.code
            raise found
        return response

    def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        with reachable(self._directory) as address, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(address)
            connection.sendall(line)
            with connection.makefile("rb") as answer:
                return answer.readline(_MOST_ANSWER_BYTES)

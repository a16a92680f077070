"""Zeebe's management port as a second, independent client sees it: takes backups and snapshots and waits for them."""

import http.client
import json
import time
from typing import Any

_WITHIN_S = 120.0
_PAUSE_S = 0.1


class Management:
    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, path: str, body: object = None, *, method: str = "GET") -> tuple[int, Any]:
        """The status and the parsed answer, or its text."""
        connection = http.client.HTTPConnection(self._url.removeprefix("http://"), timeout=60)
        data = None if body is None else json.dumps(body).encode()
        try:
            method = method if body is None else "POST"
            connection.request(method, f"/actuator/{path}", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        return answer.status, json.loads(text) if answer.status < 300 and text else text

    def back_up(self, number: int) -> dict[str, Any]:
        """Take a backup; returns Zeebe's last answer about it, COMPLETED or FAILED."""
        status, answer = self.call("backups", {"backupId": number})
        assert status == 202, (status, answer)
        deadline = time.monotonic() + _WITHIN_S
        while time.monotonic() < deadline:
            status, answer = self.call(f"backups/{number}")
            if status == 200 and answer["state"] in ("COMPLETED", "FAILED"):
                return dict(answer)
            time.sleep(_PAUSE_S)
        raise TimeoutError(f"backup {number}: {status} {answer}")

    def partitions(self) -> dict[str, dict[str, Any]]:
        return dict(self.call("partitions")[1])

    def take_snapshots(self) -> None:
        """A snapshot of every partition, newer than the last ones."""
        before = {name: found["snapshotId"] for name, found in self.partitions().items()}
        self.call("partitions/takeSnapshot", {})
        deadline = time.monotonic() + _WITHIN_S
        while any(found["snapshotId"] == before[name] for name, found in self.partitions().items()):
            if time.monotonic() > deadline:
                raise TimeoutError("no snapshot")
            time.sleep(_PAUSE_S)

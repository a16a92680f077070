"""One connection of the HTTP server. When all are taken, a new one ends the oldest of those that have no request.

So clients that connect and send nothing, or half a request, keep no others out. uvicorn sets them no limit of time.
"""

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class HttpConnection(H11Protocol):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._made_at = self.loop.time()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        known = [one for one in self.connections if isinstance(one, HttpConnection) and not one.transport.is_closing()]
        idle = [one for one in known if one.is_idle and one is not self]
        if self.limit_concurrency is not None and len(known) >= self.limit_concurrency and idle:
            min(idle, key=lambda one: one._made_at).transport.abort()

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

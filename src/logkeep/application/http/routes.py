"""The HTTP interface to backups of applications: routes, errors as problem+json, and the OpenAPI document.

POST   /v1/applications/{application}/backups                 {"backupId": N}; 202 once every partition has answered
GET    /v1/applications/{application}/backups                 all of them
GET    /v1/applications/{application}/backups/{id}            one of them, in one of four states
DELETE /v1/applications/{application}/backups/{id}            an ongoing one fails first
POST   /v1/applications/{application}/backups/{id}/restore    {"dryRun": true}; else the server must allow it
GET    /openapi.json
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from logkeep.application.http.guard import HttpProblem
from logkeep.application.http.openapi import openapi
from logkeep.application.http.operations import RestoreAnswer, RestoreBody, ServedApplication, TakeBody, names_of
from logkeep.errors import (
    BackupFailed,
    BackupRefused,
    BackupTimedOut,
    ClusterError,
    Damaged,
    IllegalTransition,
    Locked,
    LogkeepError,
    OtherOwner,
    StoreError,
    TargetUnsafe,
    UnknownBackup,
    UnknownSource,
    UsageError,
)
from logkeep.repository.backups.states import StateName

_BodyT = TypeVar("_BodyT", TakeBody, RestoreBody)
_STATUS: tuple[tuple[type[LogkeepError], HTTPStatus], ...] = (
    (IllegalTransition, HTTPStatus.CONFLICT),
    (UnknownBackup, HTTPStatus.NOT_FOUND),
    (UnknownSource, HTTPStatus.NOT_FOUND),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (Locked, HTTPStatus.CONFLICT),
    (TargetUnsafe, HTTPStatus.CONFLICT),
    (OtherOwner, HTTPStatus.CONFLICT),
    (BackupTimedOut, HTTPStatus.GATEWAY_TIMEOUT),
    (BackupRefused, HTTPStatus.CONFLICT),
    (BackupFailed, HTTPStatus.BAD_GATEWAY),
    (ClusterError, HTTPStatus.BAD_GATEWAY),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
    (Damaged, HTTPStatus.INTERNAL_SERVER_ERROR),
)


def http_application(applications: Sequence[ServedApplication]) -> Starlette:
    served = names_of(applications)

    def chosen(request: Request) -> ServedApplication:
        name = request.path_params["application"]
        if name not in served:
            raise UnknownSource(f"no application is called {name!r} here", remedy=f"it serves {', '.join(served)}")
        return served[name]

    async def take(request: Request) -> Response:
        wanted = await _body(request, TakeBody)
        return await _answered(lambda: _json(chosen(request).take(wanted), HTTPStatus.ACCEPTED))

    async def show(request: Request) -> Response:
        return await _answered(lambda: _show(chosen(request), _number(request)))

    async def show_all(request: Request) -> Response:
        return await _answered(lambda: _json(chosen(request).all()))

    async def remove(request: Request) -> Response:
        return await _answered(lambda: _removed(chosen(request), _number(request)))

    async def restore(request: Request) -> Response:
        wanted = await _body(request, RestoreBody)
        return await _answered(lambda: _restored(chosen(request), _number(request), wanted))

    async def document(_: Request) -> Response:
        return Response(msgspec.json.encode(openapi()), media_type="application/json")

    one = "/v1/applications/{application}/backups/{id}"
    return Starlette(
        routes=[
            Route("/v1/applications/{application}/backups", take, methods=["POST"]),
            Route("/v1/applications/{application}/backups", show_all, methods=["GET"]),
            Route(one, show, methods=["GET"]),
            Route(one, remove, methods=["DELETE"]),
            Route(f"{one}/restore", restore, methods=["POST"]),
            Route("/openapi.json", document, methods=["GET"]),
        ],
        exception_handlers={LogkeepError: _refused, 404: _unknown_path, 405: _unknown_path},
    )


async def _answered(work: Callable[[], Response]) -> Response:
    """Work blocks: it runs in a thread."""
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415

    return await run_in_threadpool(work)


async def _body(request: Request, kind: type[_BodyT]) -> _BodyT:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the body is not as expected: {error}", remedy="/openapi.json describes it") from error


def _number(request: Request) -> int:
    text = request.path_params["id"]
    if not text.isdecimal() or len(text) > 18:
        raise UsageError(f"{text!r} is not a backup id", remedy="give a number; a GET of …/backups lists them")
    return int(text)


def _show(application: ServedApplication, number: int) -> Response:
    found = application.show(number)
    missing = found.state is StateName.DOES_NOT_EXIST
    return _json(found, HTTPStatus.NOT_FOUND if missing else HTTPStatus.OK)


def _removed(application: ServedApplication, number: int) -> Response:
    application.delete(number)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _restored(application: ServedApplication, number: int, wanted: RestoreBody) -> Response:
    if wanted.dry_run:
        return _json(RestoreAnswer(dry_run=True, plan=application.planned(number)))
    return _json(application.restore(number))


def _json(answer: msgspec.Struct, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, LogkeepError):
        raise error
    status = next((s for kind, s in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    problem = HttpProblem(
        title=status.phrase, status=status, detail=error.what, subject=error.subject or "", remedy=error.remedy or ""
    )
    return _problem(problem)


def _unknown_path(request: Request, error: Any) -> Response:
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {request.url.path} is not an operation"
    return _problem(HttpProblem(title=status.phrase, status=status, detail=detail, remedy="/openapi.json lists them"))


def _problem(problem: HttpProblem) -> Response:
    return Response(msgspec.json.encode(problem), problem.status, media_type="application/problem+json")

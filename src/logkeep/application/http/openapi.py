"""The OpenAPI 3.1 document of the HTTP interface, made from the structs that it reads and answers."""

from typing import Any

import msgspec

from logkeep.application.http.guard import HttpProblem
from logkeep.application.http.operations import BackupAnswer, BackupList, RestoreAnswer, RestoreBody, TakeBody
from logkeep.model.version import __version__

_APPLICATION = {"name": "application", "in": "path", "required": True, "schema": {"type": "string"}}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
_SECURED = [{"token": list[str]()}]


def openapi() -> dict[str, Any]:
    _, components = msgspec.json.schema_components(
        [TakeBody, RestoreBody, BackupAnswer, BackupList, RestoreAnswer, HttpProblem],
        ref_template="#/components/schemas/{name}",
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Logkeep: backups of applications", "version": __version__},
        "paths": {
            "/v1/applications/{application}/backups": {
                "parameters": [_APPLICATION],
                "post": _operation("takeBackup", "Take a backup.", {202: "BackupAnswer"}, "TakeBody"),
                "get": _operation("listBackups", "All backups in any state.", {200: "BackupList"}),
            },
            "/v1/applications/{application}/backups/{id}": {
                "parameters": [_APPLICATION, _ID],
                "get": _operation("showBackup", "The state of a backup.", {200: "BackupAnswer", 404: "BackupAnswer"}),
                "delete": _operation("deleteBackup", "Delete a backup; an ongoing one fails first.", {204: ""}),
            },
            "/v1/applications/{application}/backups/{id}/restore": {
                "parameters": [_APPLICATION, _ID],
                "post": _operation(
                    "restoreBackup", "Plan a restore, or restore.", {200: "RestoreAnswer"}, "RestoreBody"
                ),
            },
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(name: str, summary: str, answers: dict[int, str], body: str = "") -> dict[str, Any]:
    responses: dict[str, Any] = {
        str(status): {"description": "done", **(_content(schema) if schema else {})}
        for status, schema in answers.items()
    }
    responses["default"] = {"description": "an error", **_content("HttpProblem", "application/problem+json")}
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": responses}
    if body:
        operation["requestBody"] = {"required": True, **_content(body)}
    if body or 204 in answers:
        operation["security"] = _SECURED
    return operation


def _content(schema: str, kind: str = "application/json") -> dict[str, Any]:
    return {"content": {kind: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}

"""Apicurio's registry: found by its own API, exported and imported as the zip file that only it understands.

Its answers to Confluent's API do not keep ids on import: a schema that is registered with an id gets another one, with
status 200. Its own import keeps ids, versions and references.
"""

from typing import Final

from logkeep.errors import ClusterError
from logkeep.kafka.registry.client import LARGEST_EXPORT, RegistryClient
from logkeep.kafka.registry.confluent import ConfluentApi

_OWN: Final = "/apis/registry/v3"
_CONFLUENT: Final = "/apis/ccompat/v7"
_ZIP: Final = "application/zip"


def open_api(client: RegistryClient) -> ConfluentApi:
    """The API at the client's address: Apicurio's, if it answers as Apicurio does. Raises ClusterError."""
    root = client.address.path.partition("/apis/")[0]
    answer = client.get(f"{root}{_OWN}/system/info")
    if answer.ok and "json" in answer.kind:
        found = answer.json()
        if isinstance(found, dict) and "Apicurio" in str(found.get("name")):
            return ConfluentApi(client, root + _CONFLUENT, "apicurio", root)
    return ConfluentApi(client, client.address.path)


def export(api: ConfluentApi) -> bytes:
    """Everything in the registry, as a zip file of its own kind. Raises ClusterError."""
    path = f"{api.root}{_OWN}/admin/export"
    answer = api.client.request("GET", path, headers={"Accept": _ZIP}, limit=LARGEST_EXPORT)
    if not answer.ok:
        raise ClusterError(f"the registry exports nothing ({answer.why()})", subject=answer.request)
    return answer.body


def import_export(api: ConfluentApi, data: bytes) -> None:
    """Import an export. Raises ClusterError."""
    headers = {"Content-Type": _ZIP, "X-Registry-Preserve-GlobalId": "true", "X-Registry-Preserve-ContentId": "true"}
    answer = api.client.request("POST", f"{api.root}{_OWN}/admin/import", data, headers)
    if not answer.ok:
        raise ClusterError(f"the registry refused the import ({answer.why()})", subject=answer.request)

"""Encodes requests and decodes replies with kafka-python; the only module that imports it.

`shape(api)` has the supported versions; `encode` makes one framed request, `decode` reads one reply body. kafka-python
has no types, so replies are `Any` here; the admin calls turn them into frozen values at once.
"""

import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.errors import for_code
from kafka.net.sasl.plain import SaslMechanismPlain
from kafka.net.sasl.scram import SaslMechanismScram
from kafka.protocol import admin, consumer, metadata, producer, sasl
from kafka.protocol.api_message import ApiMessage

from logkeep.errors import InvalidAnswer, LogkeepError

_LIBRARY = (admin, consumer, metadata, producer, sasl)
_OWN = (
    "AlterShareGroupOffsets",
    "ConsumerGroupDescribe",
    "DeleteShareGroupOffsets",
    "DescribeShareGroupOffsets",
    "FetchSnapshot",
    "ShareGroupDescribe",
)
"""APIs that kafka-python lacks; their shapes are in `messages/`."""


@dataclass(frozen=True)
class Shape:
    """The message classes of one API, and its supported versions."""

    api: str
    key: int
    lowest: int
    highest: int
    request: Any
    response: Any

    def flexible(self, version: int) -> bool:
        """Whether the headers of this version have tagged fields."""
        return _flexible(self.request, version)


@functools.cache
def _flexible(request: Any, version: int) -> bool:
    return bool(request.flexible_version_q(version))


@functools.cache
def shape(api: str) -> Shape:
    """The API by its name in Kafka's protocol guide, such as `ListOffsets`."""
    request, response = _message_class(f"{api}Request"), _message_class(f"{api}Response")
    lowest, highest = request.valid_versions
    return Shape(api, request.API_KEY, lowest, highest, request, response)


@functools.cache
def error_name(code: int) -> str:
    """Kafka's own name of an error code, with the number."""
    return f"{getattr(for_code(code), 'message', 'UNKNOWN')} ({code})"


def _message_class(name: str) -> Any:
    for module in _LIBRARY:
        found = getattr(module, name, None)
        if found is not None:
            return found
    if not name.startswith(_OWN):
        raise LogkeepError(f"this release has no message {name}", remedy="report this: it is a mistake in logkeep")
    # kafka-python reads the definition with the name of the class from the package that `load_json` names.
    return type(ApiMessage)(name, (ApiMessage,), {"__slots__": ()}, load_json="logkeep.kafka.client.messages")


def encode(what: Shape, version: int, fields: Mapping[str, Any], correlation: int, client_id: str) -> bytes:
    """One request with length and header. Nested structures are mappings, lists of them sequences of mappings."""
    message = _filled(what.request, fields)
    message.API_VERSION = version
    message.with_header(correlation_id=correlation, client_id=client_id)
    return bytes(message.encode(framed=True, header=True))


def _filled(kind: Any, fields: Mapping[str, Any]) -> Any:
    return kind(**{name: _value(kind.fields[name], value) for name, value in fields.items()})


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _filled(field.data_class, value)
    if isinstance(value, Sequence) and field.is_struct_array():
        return [_filled(field.data_class, each) for each in value]
    return value


def decode(what: Shape, version: int, body: memoryview | bytes) -> Any:
    """Decode a reply without its header. Raises `InvalidAnswer` if it is not valid in this version."""
    plain = io.BytesIO(body) if what.api == "ApiVersions" else bytes(body)
    try:
        return what.response.decode(plain, version=version)
    except Exception as error:
        raise InvalidAnswer(
            f"the reply to {what.api} version {version} cannot be read ({type(error).__name__})",
            remedy="is this the port of a Kafka broker, and Kafka 3.9 or newer?",
        ) from error


def plain_mechanism(username: str, password: str) -> Any:
    return SaslMechanismPlain(sasl_plain_username=username, sasl_plain_password=password)


def scram_mechanism(mechanism: str, username: str, password: str) -> Any:
    # RFC 5802: a comma or an equals sign in a user name would end the attribute.
    escaped = username.replace("=", "=3D").replace(",", "=2C")
    return SaslMechanismScram(sasl_plain_username=escaped, sasl_plain_password=password, sasl_mechanism=mechanism)

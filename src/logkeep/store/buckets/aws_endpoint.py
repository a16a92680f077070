"""The S3 server that environment variables name, for URLs that name none.

The endpoint becomes a part of the address: reports show it, workers use it without having the variable, and plain
http is allowed exactly if it was named. An endpoint in the URL comes first.
"""

import os
from collections.abc import Mapping
from dataclasses import replace

from logkeep.errors import ConfigError, UsageError
from logkeep.store.address import Address, StoreKind, checked_endpoint

VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""In order of precedence. The last one is not known to AWS's own tools, but to many programs."""


def with_endpoint(address: Address, environment: Mapping[str, str] = os.environ) -> Address:
    """The address with the endpoint of the environment, if it is one of S3 without its own. Raises ConfigError."""
    name = next((name for name in VARIABLES if environment.get(name)), None)
    if address.kind is not StoreKind.S3 or address.endpoint or name is None:
        return address
    try:
        return replace(address, endpoint=checked_endpoint(environment[name]))
    except UsageError as error:
        what = f"the endpoint in {name} cannot be used: {error.what}"
        remedy = f"unset {name}, or name the endpoint in the URL: ?endpoint=https://host:port"
        raise ConfigError(what, remedy=remedy) from None

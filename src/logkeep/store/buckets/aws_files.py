"""Reads static keys from the AWS credentials file, which obstore does not.

obstore handles environment variables, web identity, container and instance roles; they take precedence. For profiles
that need a login or a role, use a tool that sets the environment.
"""

import configparser
import os
from collections.abc import Mapping
from pathlib import Path

from logkeep.errors import ConfigError

_AMBIENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_WANTED = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def file_credentials(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The keys of the profile under obstore's names; empty if the environment has credentials."""
    if any(environment.get(name) for name in _AMBIENT):
        return {}
    path = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials").expanduser()
    profile = environment.get("AWS_PROFILE") or "default"
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        # The parser's message quotes the line, which may contain the key.
        raise ConfigError(
            "the AWS credentials file cannot be read", subject=str(path), remedy="correct the file"
        ) from None
    if not parser.has_section(profile):
        return {}
    return {ours: parser[profile][theirs] for theirs, ours in _WANTED.items() if theirs in parser[profile]}

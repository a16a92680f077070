"""Requests about an S3 bucket itself, which obstore does not have. Only this module imports boto3.

boto3 is optional and slow to load. Without it, and if the server refuses, `BucketUnknown` says why nothing is known.
"""

from collections.abc import Callable, Iterator
from typing import Any

from logkeep.store.address import Address


class BucketUnknown(Exception):
    """Something about the bucket is not known; the text says why."""


class BucketRequests:
    """A client for one bucket."""

    def __init__(self, address: Address) -> None:
        try:
            import boto3  # noqa: PLC0415  # optional, and slow to load
            from botocore.config import Config  # noqa: PLC0415
        except ImportError:
            raise BucketUnknown("boto3 is not installed (pip install 'logkeep[s3]')") from None
        config = Config(
            connect_timeout=5,
            read_timeout=20,
            retries={"max_attempts": 2},
            s3={"addressing_style": "path"},
            ignore_configured_endpoint_urls=True,  # the address has the endpoint; a second server must not answer
        )
        self._bucket = address.bucket
        self._client: Any = self._answered(
            lambda: boto3.client(
                "s3", endpoint_url=address.endpoint or None, region_name=address.region or "us-east-1", config=config
            )
        )

    def ask(self, request: str, missing: str = "", **fields: Any) -> dict[str, Any] | None:
        """The answer to a request about the bucket; None for the error code `missing`: the bucket has no such thing."""
        ask = getattr(self._client, request)
        answer: dict[str, Any] | None = self._answered(lambda: ask(Bucket=self._bucket, **fields), missing)
        return answer

    def pages(self, request: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """All pages of an answer."""
        pages = iter(self._client.get_paginator(request).paginate(Bucket=self._bucket, **fields))
        while (page := self._answered(lambda: next(pages, None))) is not None:
            yield page

    def _answered(self, call: Callable[[], Any], missing: str = "") -> Any:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as above

        try:
            return call()
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if missing and code == missing:
                return None
            raise BucketUnknown(f"the store answered {code[:80]}") from None
        except BotoCoreError as error:
            raise BucketUnknown(f"the request failed ({type(error).__name__})") from None

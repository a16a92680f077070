"""Translates obstore's exceptions into errors of `logkeep.errors`.

obstore has one exception for most refusals; status and code are in its message. The message itself is never shown: it
can contain signed URLs. Errors have the status and the server's own code; `connection_errors` says why none came.
"""

import re

from obstore.exceptions import (
    AlreadyExistsError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from logkeep.errors import (
    AlreadyExists,
    Damaged,
    LogkeepError,
    ObjectMissing,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreLocationMissing,
    StoreUnreachable,
    UnsafeName,
    VersionMismatch,
)
from logkeep.store.buckets.connection_errors import no_answer

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>\s*([A-Za-z0-9]{1,60})\s*</Code>")
_BAD_PATH = re.compile(r'Error parsing Path "([^"\n]{0,300})"')
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "NoSuchContainer"}
_BUSY = {"SlowDown", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests", "ServerBusy"}
_CONFLICT = {"ConditionalRequestConflict", "OperationAborted"}
_FULL = {"QuotaExceeded", "InsufficientCapacity", "XMinioStorageFull", "EntityTooLarge", "InsufficientStorage"}
_CREDENTIAL_SERVICES = ("169.254.169.254", "169.254.170.", "metadata.google.internal", "CredentialProvider")
"""Services that obstore asks for the identity of the host if it finds no other credentials."""
_WHERE_CREDENTIALS = (
    "set them in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, "
    "AZURE_STORAGE_ACCOUNT_KEY, …) or give this host an identity"
)
_SKEW = "RequestTimeTooSkewed"


def translated(error: Exception, subject: str, place: str) -> LogkeepError:
    """Our error for an exception about `subject`, or about the whole store at `place`."""
    text = str(error).partition("Debug source:")[0]
    if any(service in text for service in _CREDENTIAL_SERVICES):
        return StoreDenied("no credentials were found for this store", subject=place, remedy=_WHERE_CREDENTIALS)
    status, code = _match(_STATUS, text), _match(_CODE, text)
    if status or code:
        if code in _NO_BUCKET:
            return StoreLocationMissing(f"no such bucket (the store answered {status} {code})", subject=place)
        return _refusal_error(error, status, code, subject)
    return _other_error(error, text, subject, place)


def _refusal_error(error: Exception, status: str, code: str, subject: str) -> LogkeepError:
    """The store answered with a refusal."""
    what = f"the store answered {' '.join(filter(None, (status, code)))}"
    if code in _CONFLICT or code in _BUSY or status in {"429", "503"}:
        return StoreBusy(what, subject=subject)
    if code in _FULL or status == "507":
        return StoreFull(what, subject=subject)
    if code == _SKEW:
        return StoreDenied(
            what, subject=subject, remedy="correct the clock of this host; it differs too much from the store's"
        )
    if isinstance(error, AlreadyExistsError):
        return AlreadyExists("the name exists already", subject=subject)
    return _by_status(error, status, what, subject)


_NO_CHECKSUM = (
    "some S3 servers refuse the checksum that every write carries (x-amz-checksum-sha256): add checksum=none to the URL"
)


def _by_status(error: Exception, status: str, what: str, subject: str) -> LogkeepError:
    if isinstance(error, FileNotFoundError) or status == "404":
        return ObjectMissing("no such object", subject=subject)
    if isinstance(error, PreconditionError) or status == "412":
        return VersionMismatch("the object changed since it was read", subject=subject)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in {"401", "403"}:
        return StoreDenied(what, subject=subject)
    if status == "416":
        return Damaged("it ends before the requested range", subject=subject)
    if status == "408" or (status.startswith("5") and status != "501"):
        return StoreUnreachable(what, subject=subject)
    return StoreError(what, subject=subject, remedy=_NO_CHECKSUM if status in {"400", "501"} else None)


def _other_error(error: Exception, text: str, subject: str, place: str) -> LogkeepError:
    """There was no reply, or obstore refused by itself."""
    if isinstance(error, InvalidPathError):
        remedy = "remove that object with the provider's own tool; it was not written by logkeep"
        return UnsafeName("an object has a name that cannot be listed", subject=_match(_BAD_PATH, text), remedy=remedy)
    if isinstance(error, NotSupportedError) or "non-partial response" in text:
        return StoreError("the store does not support this request", subject=subject)
    if "redirect" in text:
        return StoreError("the bucket is in another region", subject=place, remedy="add ?region=… to the URL")
    return no_answer(str(error), place) or StoreError("the store's reply is not understood", subject=subject)


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""

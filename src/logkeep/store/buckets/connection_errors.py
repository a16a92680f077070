"""Names the cause when a store in a network sent no answer: refused, DNS, TLS, timeout.

obstore puts the cause only into the debug part of its text. This module is pure: text in, error out. The error repeats
host and port from obstore's text, and nothing else of it.
"""

import re

from logkeep.errors import StoreUnreachable

_SERVER = re.compile(r"Error performing [A-Z]+ (https?)://([A-Za-z0-9.:\[\]_-]{1,300})")
_PEER = re.compile(r'"tcp connect error",\s*([0-9A-Fa-f.:\[\]]{1,60}),')
_DNS = re.compile(r"\"dns error\"|InvalidDnsNameError")
_LOOKUP = re.compile(r"failed to lookup address information: ([A-Za-z ]{1,80})")
_SECONDS = re.compile(r" in (\d+)(?:\.\d+)?s ")
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*([A-Za-z]{1,40})")
_TLS = re.compile(r"\b(InvalidMessage|AlertReceived|PeerIncompatible|PeerMisbehaved|Inappropriate\w{1,30})\b")
_NO_ROUTE = re.compile(r"\b(NetworkUnreachable|HostUnreachable|NetworkDown)\b")
_CLOSED = re.compile(r"ConnectionReset|ConnectionAborted|BrokenPipe|IncompleteMessage|UnexpectedEof|error decoding")
_NO_ANSWER = re.compile(r"HTTP error|error sending request|timed out|connection|dns error", re.IGNORECASE)

_ENDPOINT = "the endpoint (in the URL, or in AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL)"
_TRUST = "set SSL_CERT_FILE to a file with the certificate of its authority"
_CERTIFICATES = {
    "UnknownIssuer": ("is not trusted: its authority is unknown", _TRUST),
    "Other": ("is not trusted", f"use a certificate that an authority signed; {_TRUST}"),
    "NotValidForName": ("is for other host names", f"use a host name of the certificate in {_ENDPOINT}"),
    "Expired": ("has expired", "renew it, and check the clock of this host"),
    "NotValidYet": ("is not valid yet", "check the clock of this host"),
}


def no_answer(text: str, place: str) -> StoreUnreachable | None:
    """The error for obstore's `text` about the store at `place`; None if the text is about something else."""
    scheme, server = _server(text)
    return (
        _tls_failed(text, server, place)
        or _not_reached(text, server, place)
        or _no_reply(text, scheme, server, place)
        or (StoreUnreachable("the store does not answer", subject=place) if _NO_ANSWER.search(text) else None)
    )


def _server(text: str) -> tuple[str, str]:
    found = _SERVER.search(text)
    return (found[1], found[2]) if found else ("", "the store")


def _tls_failed(text: str, server: str, place: str) -> StoreUnreachable | None:
    if found := _CERTIFICATE.search(text):
        what, remedy = _CERTIFICATES.get(found[1].removesuffix("Context"), (f"is not valid ({found[1]})", _TRUST))
        return _lasting(f"TLS: the certificate of {server} {what}", place, remedy)
    found = _TLS.search(text)
    if found is None:
        return None
    if "InvalidContentType" in text:
        what, remedy = f"TLS: {server} does not answer with TLS", f"check the port, or use http:// in {_ENDPOINT}"
        return _lasting(what, place, remedy)
    return _lasting(f"TLS: no agreement with {server} ({found[1]})", place, "the log of the server may say more")


def _not_reached(text: str, server: str, place: str) -> StoreUnreachable | None:
    peer = found[1] if (found := _PEER.search(text)) else server
    if "ConnectionRefused" in text:
        remedy = f"start the server, or correct host and port of {_ENDPOINT}; a proxy (HTTPS_PROXY) counts too"
        return _lasting(f"connection refused by {peer}", place, remedy)
    if _DNS.search(text):
        host = server.rpartition(":")[0] or server
        why = f" ({found[1].lower()})" if (found := _LOOKUP.search(text)) else ""
        remedy = f"correct the host name in {_ENDPOINT}, or the DNS settings of this host"
        return _lasting(f"DNS: the host name {host} is not found{why}", place, remedy)
    if _NO_ROUTE.search(text):
        return _lasting(f"no route to {peer}", place, f"check the network, and host and port of {_ENDPOINT}")
    return None


def _no_reply(text: str, scheme: str, server: str, place: str) -> StoreUnreachable | None:
    if re.search(r"kind: Timeout|TimedOut", text):
        within = f" within {found[1]} s" if (found := _SECONDS.search(text)) else ""
        remedy = f"check the network, a firewall, and host and port of {_ENDPOINT}"
        if re.search(r"Error\(\s*Connect,", text):
            return StoreUnreachable(f"timeout: no connection to {server}{within}", subject=place, remedy=remedy)
        return StoreUnreachable(f"timeout: no answer from {server}{within}", subject=place, remedy=remedy)
    if _CLOSED.search(text):
        remedy = "if the server expects TLS, use https:// in the endpoint; else its log may say more"
        what = f"{server} closed the connection before its answer"
        return StoreUnreachable(what, subject=place, remedy=remedy if scheme == "http" else None)
    return None


def _lasting(what: str, place: str, remedy: str) -> StoreUnreachable:
    error = StoreUnreachable(what, subject=place, remedy=remedy)
    error.lasting = True
    return error

"""Whether a text can be the name or address of a host at all; whether the host exists is for the resolver to say."""

from urllib.parse import SplitResult, urlsplit

_LONGEST = 253


def is_host_name(text: str) -> bool:
    """False for names that resolvers refuse: empty or long labels, blanks, control characters."""
    if not text or len(text) > _LONGEST or any(c.isspace() or not c.isprintable() for c in text):
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def http_address(text: str) -> SplitResult | None:
    """The parts of an `http` or `https` URL; None if it is none, or if its host or port cannot exist."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and parts.port != 0 and is_host_name(parts.hostname or "")
    except ValueError:
        return None
    return parts if usable else None

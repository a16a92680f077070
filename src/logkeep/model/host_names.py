"""Whether a text can be the name or address of a host at all; whether the host exists is for the resolver to say."""

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

"""Numbers with their nouns and the first of many names, for findings, errors and reports."""

from collections.abc import Sequence


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 topic`, `2,000 topics`; `nouns` where the plural is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def first_names(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c, d, e, …`; `none` without any."""
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])]) or "none"

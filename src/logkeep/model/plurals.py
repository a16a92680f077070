"""Numbers with their nouns, for findings, errors and reports."""


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 topic`, `2,000 topics`; `nouns` where the plural is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"

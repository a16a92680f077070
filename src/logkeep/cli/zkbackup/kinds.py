"""Values that only zkbackup's options have: names of bundles."""

import re
from dataclasses import dataclass

_BUNDLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class BundleId:
    """The name of a bundle, which is also that of its directory."""

    metavar: str = "ID"
    expected: str = "1 to 64 letters, digits, dots, dashes or underscores, and no dot first"

    def parse(self, text: str) -> str:
        if not _BUNDLE_ID.fullmatch(text) or text.startswith("."):
            raise ValueError(f"must be {self.expected}, not {text!r}")
        return text

    def from_yaml(self, value: object) -> str:
        return self.parse(str(value))

    def show(self, value: object) -> str:
        return str(value)

"""`python -m logkeep.cli.reference DIRECTORY`: write all pages and schemas; refuse to remove a published field."""

import json
import sys
from pathlib import Path

from logkeep.cli.reference import all_pages, all_schemas, lost_fields


def write_reference(directory: Path) -> list[str]:
    """Write all files; or none, and return the reasons."""
    pages = {directory / name: text for name, text in all_pages().items()}
    schemas = {directory / "schemas" / name: text for name, text in all_schemas().items()}
    reasons = [
        f"{path.name}: {lost} was published and is missing; restore it, or raise the verb's schema_version"
        for path, text in schemas.items()
        if path.exists()
        for lost in lost_fields(json.loads(path.read_text()), json.loads(text))
    ]
    if not reasons:
        (directory / "schemas").mkdir(parents=True, exist_ok=True)
        for path, text in {**pages, **schemas}.items():
            path.write_text(text, encoding="utf-8")
    return reasons


if __name__ == "__main__":
    problems = write_reference(Path(sys.argv[1]))
    sys.exit("\n".join(problems) if problems else 0)

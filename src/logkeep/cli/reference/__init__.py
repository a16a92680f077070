"""The reference pages, made from the declarations they describe: `python -m logkeep.cli.reference docs/reference`.

`pages` writes what people read, `schemas` what programs read. Fields of published JSON documents are only ever added:
the generator refuses to write a schema from which one is gone.
"""

from logkeep.cli.reference.pages import all_pages
from logkeep.cli.reference.schemas import all_schemas, lost_fields

__all__ = ["all_pages", "all_schemas", "lost_fields"]

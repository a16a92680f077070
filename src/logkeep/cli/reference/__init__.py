"""The generator of the reference pages: `python -m logkeep.cli.reference docs/reference`.

`pages` makes the pages for users, `schemas` the JSON schemas, both from the declarations in the code. Fields of
published JSON documents are only ever added: the generator refuses to write a schema that lacks a published field.
"""

from logkeep.cli.reference.pages import all_pages
from logkeep.cli.reference.schemas import all_schemas, lost_fields

__all__ = ["all_pages", "all_schemas", "lost_fields"]

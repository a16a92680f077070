"""The type of arguments and flags that name something in the repository: a shell can complete them."""

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from logkeep.cli.frame.command_groups import named_object
from logkeep.cli.frame.world import World

_READER = "logkeep.cli.verbs.archived_names:archived_names"
"""It opens the repository, so it is loaded only when a shell asks."""


class ArchivedName(StringParamType):
    """A text, with suggestions. `kind` is `backups`, `sources` or `topics`."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        read, world = named_object(_READER), ctx.find_object(World)
        if world is None or not callable(read):
            return []
        flags = {f"--{name}": ctx.params.get(name) for name in ("repo", "source", "config")}
        return [CompletionItem(name) for name in read(self.kind, world, flags) if name.startswith(incomplete)]

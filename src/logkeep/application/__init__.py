"""Write a partitioned stream processor whose backups are consistent: one handler per command, nothing about backups.

from logkeep.application import Application

shop = Application("shop", partitions=4)

@shop.on("order")
def order(command, state, context): ...

if __name__ == "__main__":
    shop.main()
"""

from logkeep.application.application import Application
from logkeep.application.command import Command
from logkeep.application.context import Context

__all__ = ["Application", "Command", "Context"]

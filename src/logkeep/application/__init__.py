"""Applications that are backed up at a consistent cut: a runtime of their own, and participants on Kafka.

A program with one handler per command, and nothing about backups:

    from logkeep.application import Application

    shop = Application("shop", partitions=4)

    @shop.on("order")
    def order(command, state, context): ...

    if __name__ == "__main__":
        shop.main()
"""

from logkeep.application.application import Application
from logkeep.application.context import Command, Context

__all__ = ["Application", "Command", "Context"]

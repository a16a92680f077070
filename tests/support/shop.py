"""A shop whose money shows every inconsistent cut: accounts and paid orders add up once messages have arrived."""

from typing import Any

from logkeep.application import Application, Command, Context

GIVEN = 1000
"""What every customer has at first."""


def shop(name: str, partitions: int = 4) -> Application:
    made = Application(name, partitions=partitions)

    @made.on("order")
    def order(command: Command, state: Any, context: Context) -> None:
        state[command.key] = {"total": command.value["total"], "status": "open"}
        context.send("charge", key=command.value["customer"], value={"order": command.key, **command.value})

    @made.on("charge")
    def charge(command: Command, state: Any, context: Context) -> None:
        balance = state.get(command.key, GIVEN)
        paid = balance >= command.value["total"]
        state[command.key] = balance - command.value["total"] * paid
        context.send("charged", key=command.value["order"], value={"paid": paid})

    @made.on("charged")
    def charged(command: Command, state: Any, _context: Context) -> None:
        state[command.key] = state[command.key] | {"status": "paid" if command.value["paid"] else "refused"}

    return made


def large_shop(name: str) -> Application:
    return shop(name, partitions=8)


def difference(state: dict[str, Any]) -> int:
    """Money that is missing in a state whose messages have arrived; orders that are still open count as an error."""
    orders = [value for value in state.values() if isinstance(value, dict)]
    assert all(one["status"] != "open" for one in orders)
    spent = sum(GIVEN - value for value in state.values() if isinstance(value, int))
    return spent - sum(int(one["total"]) for one in orders if one["status"] == "paid")

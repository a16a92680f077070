"""A shop: orders, accounts and payments on different partitions, and what must hold once all messages have arrived.

The amount of an order depends on the clock, so calling a handler a second time gives another message than the first
time: a cut that makes this necessary is found.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from logkeep.checkpoint.records import NAME, Record, SentCommand

BALANCE = 100
Writes = tuple[tuple[str, bytes | None], ...]
HandlerOutcome = tuple[Writes, tuple[SentCommand, ...], Any]
CallUser = Callable[[Record, Mapping[str, bytes], int], HandlerOutcome]
Invariant = Callable[[Mapping[str, Any]], Sequence[str]]
_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


class Workload(msgspec.Struct, frozen=True):
    """Handlers, the commands that clients send (name, key, value), and the invariant over the drained state."""

    call: CallUser
    commands: Callable[[int], tuple[str, str, Any]]
    invariant: Invariant
    law: str = "money"
    """One word for what the invariant says."""


def call_shop(command: Record, state: Mapping[str, bytes], now_ms: int) -> HandlerOutcome:
    name, key = command.text(NAME), (command.key or b"").decode()
    value = _unpack(command.value)
    held = _unpack(state[key]) if key in state else None
    if name == "order":
        if held is not None:
            return (), (), "known"
        total = value["total"] + now_ms % 3
        charge = SentCommand("charge", value["customer"], _pack({"order": key, "amount": total}))
        order = {"customer": value["customer"], "total": total, "status": "open"}
        return ((key, _pack(order)),), (charge,), "accepted"
    if name == "charge":
        balance = BALANCE if held is None else held
        paid = balance >= value["amount"]
        left = balance - value["amount"] if paid else balance
        return ((key, _pack(left)),), (SentCommand("charged", value["order"], _pack({"paid": paid})),), None
    return ((key, _pack({**(held or {}), "status": "paid" if value["paid"] else "refused"})),), (), None


def shop_command(number: int) -> tuple[str, str, Any]:
    return "order", f"o{number}", {"customer": f"c{number % 3}", "total": 5 + number % 7}


def money_is_right(state: Mapping[str, Any]) -> Sequence[str]:
    """Each account lacks exactly what its paid orders cost, and no order waits."""
    orders = {key: value for key, value in state.items() if key.startswith("o")}
    found = [
        f"order {key} is {value.get('status')}"
        for key, value in orders.items()
        if value.get("status") not in ("paid", "refused")
    ]
    for customer in sorted(
        {key for key in state if key.startswith("c")} | {o.get("customer", "") for o in orders.values()}
    ):
        spent = sum(o["total"] for o in orders.values() if o.get("customer") == customer and o.get("status") == "paid")
        balance = state.get(customer, BALANCE)
        if balance + spent != BALANCE:
            found.append(f"{customer} has {balance} and paid {spent}")
    return found


SHOP = Workload(call_shop, shop_command, money_is_right)

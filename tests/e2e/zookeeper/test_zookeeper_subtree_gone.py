"""An undo of a subtree's restore on a real server: some nodes are gone by themselves, others are somebody's by now."""

import pytest

from tests.e2e.zookeeper.test_zookeeper_subtree import Shop, opened, shop
from tests.support.zookeeper.tree_recorder import kazoo

__all__ = ["opened", "shop"]
pytestmark = pytest.mark.xdist_group("zookeeper-subtree-gone")


def _undone(shop: Shop, journal: str, code: int = 0) -> dict[str, object]:
    path = shop.here.root / journal
    asked = ("--undo", str(path), "--journal", f"{path}-undo", "--yes", *shop.auth)
    return dict(shop.here.json("zookeeper", "restore-subtree", *asked, code=code))


def test_a_time_to_live_that_has_run_out_is_no_reason_to_stop(shop: Shop) -> None:
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/offer")
        client.delete("/shop/basket", recursive=True)
        client.delete("/shop/orders/0")
    broken = shop.now()
    shop.back(shop.backup, "/shop", "--yes", "--journal", str(shop.here.root / "expired"))
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/offer")  # as its server would, in an hour
    undone = _undone(shop, "expired")
    assert (undone["verdict"], undone["made"], undone["left_alone"], undone["differing"]) == ("undone", 3, [], [])
    assert shop.now() == broken


def test_what_was_created_again_is_left_alone(shop: Shop) -> None:
    with kazoo(shop.server.client, shop.server.password) as client:
        for number in range(3):
            client.delete(f"/shop/orders/{number}")
    shop.back(shop.backup, "/shop", "--yes", "--journal", str(shop.here.root / "again"))
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/orders/1")
        client.create("/shop/orders/1", b"order 1")
    undone = _undone(shop, "again", code=2)
    assert (undone["verdict"], undone["left_alone"], undone["made"]) == ("changed-since", ["/shop/orders/1"], 2)
    assert {"/shop/orders/0", "/shop/orders/1", "/shop/orders/2"} & shop.now().keys() == {"/shop/orders/1"}

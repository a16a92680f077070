"""Search and compare archived transactions: the history of a znode, SQL rows, differences of trees."""

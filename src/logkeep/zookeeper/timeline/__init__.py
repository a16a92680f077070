"""Which transactions of a history are archived, which points in time can be restored, and replay with proof."""

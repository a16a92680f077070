"""`kafka backup`: reads facts from the cluster, plans, copies logs in tasks, and records the rest."""

"""Where exported records come from: a cluster, or a backup."""

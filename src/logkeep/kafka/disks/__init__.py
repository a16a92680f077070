"""Log directories of brokers: layout, locks, segment files, and the cluster's metadata log. Nothing is ever written."""

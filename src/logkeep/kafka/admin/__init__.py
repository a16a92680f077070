"""Typed questions to a cluster. Each takes a `Cluster`, returns frozen values, and raises errors of ours alone."""

"""Requests that read or change a cluster. Each takes a `Cluster`, returns frozen values, raises errors of `errors`."""

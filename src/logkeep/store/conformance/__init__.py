"""The promises of a store as checks, for tests and for `store probe`."""

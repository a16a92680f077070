"""The promises of state backends and logs as checks, for ours and for users' own."""

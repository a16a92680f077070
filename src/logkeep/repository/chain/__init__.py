"""The commit chain of a source: names, sealed documents, commits, what they mean, leases."""

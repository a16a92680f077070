"""The verbs that create, check and tidy a repository, whatever its sources are."""

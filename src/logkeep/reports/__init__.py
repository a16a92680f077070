"""Report values of the verbs that read, and how they are built from a repository. No text, no command line."""

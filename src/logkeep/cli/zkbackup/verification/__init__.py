"""What `zkbackup verify` does to one bundle: its structure, the checks, the verdict, and the repair of `--fix`."""

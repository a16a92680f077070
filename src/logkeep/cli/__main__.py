"""`python -m logkeep.cli`: the `logkeep` command without its script."""

from logkeep.cli.frame.main import main

if __name__ == "__main__":
    main()

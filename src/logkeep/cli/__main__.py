"""`python -m logkeep.cli`: the same command where no script directory is on the path."""

from logkeep.cli.frame.main import main

if __name__ == "__main__":
    main()

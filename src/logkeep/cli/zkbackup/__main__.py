"""`python -m logkeep.cli.zkbackup`."""

from logkeep.cli.zkbackup.main import main

if __name__ == "__main__":
    main()

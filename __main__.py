"""``python -m quietbits`` runs the `quietbits` command where scripts are not on the path."""

from .cli.main import main

if __name__ == "__main__":
    main()

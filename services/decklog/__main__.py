"""`python -m decklog` is `decklog`."""

from decklog.cli.main import main

if __name__ == "__main__":
    main()

"""The tests of decklog: what is in which folder stands in docs/how-to/run-the-tests.md."""

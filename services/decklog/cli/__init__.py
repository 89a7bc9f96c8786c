"""The command line: parse, call `bootstrap` or `history`, render.

Every command imports what it needs when it runs, so that `decklog --help` answers at once. No
command knows an adapter, and standard output carries data only.
"""

"""The errors that decklog raises, each where somebody treats it differently.

DecklogError
├── TransientError          the world failed; the runner backs off and calls the step again
│   ├── LogUnavailable
│   ├── LedgerUnavailable
│   └── ClusterUnavailable
├── EntryTooLarge           an entry that the log will never take
├── PositionLost            the log no longer holds what comes after a position
├── Deposed                 another generation leads; the process ends at once
├── IllegalTransition       a decision contradicts the state: we are wrong; the process ends
├── Refused                 somebody asked for what may not be done (exit code 6)
│   └── LedgerDamaged       the database says that its own files are damaged
└── BadConfiguration        a setting or a file is not usable (exit code 2)
"""


class DecklogError(Exception):
    """Base of all errors that decklog raises by itself."""


class TransientError(DecklogError):
    """The world failed for now; the same call may work later."""


class LogUnavailable(TransientError):
    """The log did not answer."""


class LedgerUnavailable(TransientError):
    """The ledger did not answer; whether the last commit is done is known after it does."""


class ClusterUnavailable(TransientError):
    """The API server did not answer."""


class EntryTooLarge(DecklogError):
    """The log will never take this entry."""

    def __init__(self, key: str, *, size_bytes: int, size_bytes_max: int) -> None:
        self.key = key
        self.size_bytes = size_bytes
        self.size_bytes_max = size_bytes_max
        super().__init__(
            f"cannot append entry {key!r}: {size_bytes} bytes, and the log takes {size_bytes_max}"
        )


class PositionLost(DecklogError):
    """The log no longer holds the entries after a position, or was re-created."""

    def __init__(self, *, after: int, first: int, last: int) -> None:
        self.after = after
        self.first = first
        self.last = last
        super().__init__(
            f"cannot read after position {after}: the log holds positions {first} to {last}"
        )


class Deposed(DecklogError):
    """Another generation leads this stream."""

    def __init__(self, stream: str, *, generation: int, found: int) -> None:
        self.stream = stream
        self.generation = generation
        self.found = found
        super().__init__(
            f"cannot commit a tick of stream {stream!r} in generation {generation}: "
            f"the ledger is at {found}"
        )


class IllegalTransition(DecklogError):
    """A decision contradicts the state it is applied to."""


class Refused(DecklogError):
    """What was asked for may not be done; asking again does not help."""


class LedgerDamaged(Refused):
    """The database finds its own files damaged: what it holds is not what was written."""


class BadConfiguration(DecklogError):
    """A setting or a configuration file cannot be used as it is."""

"""Where questions about the past are answered from."""

from dataclasses import dataclass

from decklog.core.errors import DecklogError
from decklog.ports.clock import Clock
from decklog.ports.ledger import Head, LedgerReader, TickRow
from decklog.ports.log import Log


class NotFound(DecklogError):
    """What was asked about is not in this history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One cluster's history: its events and its stream of the ledger."""

    ledger: LedgerReader
    events: Log
    stream: str
    clock: Clock

    def head(self) -> Head:
        """Return where the stream's chains end."""
        head = self.ledger.head(self.stream)
        if head is None:
            known = self.ledger.streams()
            beside = f"; the ledger holds {', '.join(known)}" if known else ""
            msg = f"no history of cluster {self.stream!r} yet{beside}"
            raise NotFound(msg)
        return head

    def tick(self, number: int) -> TickRow | None:
        rows = self.ledger.ticks(self.stream, after=number - 1, limit=1)
        return rows[0] if rows and rows[0].tick == number else None

"""What the auditor writes: findings and its cursor in one transaction, each finding once."""

from collections.abc import Sequence
from dataclasses import dataclass

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.leader import put_dead_letters
from decklog.adapters.ledger.store import Store
from decklog.ports.ledger import Anchor, DeadLetter, Divergence


@dataclass(frozen=True, slots=True)
class Audit:
    """The auditor's part of the ledger."""

    _store: Store

    def audited(
        self,
        stream: str,
        *,
        consumer: str,
        cursor: tuple[int, int, int],
        anchors: Sequence[Anchor],
        divergences: Sequence[Divergence],
    ) -> None:
        run = self._store.run
        position, tick, seq = cursor
        with self._store.write() as connection:
            for anchor in anchors:
                run(
                    connection,
                    statements.PUT_ANCHOR,
                    stream=stream,
                    chain=anchor.chain,
                    number=anchor.number,
                    hash=anchor.hash,
                    now_ms=anchor.now_ms,
                )
            for found in divergences:
                run(
                    connection,
                    statements.PUT_DIVERGENCE,
                    stream=stream,
                    tick=found.tick,
                    seq=found.seq,
                    want=found.want,
                    got=found.got,
                )
            run(
                connection,
                statements.MOVE_CURSOR,
                stream=stream,
                consumer=consumer,
                position=position,
                tick=tick,
                seq=seq,
            )

    def dead_letter(self, stream: str, letters: Sequence[DeadLetter]) -> None:
        if letters:
            with self._store.write() as connection:
                put_dead_letters(self._store, connection, stream, letters)

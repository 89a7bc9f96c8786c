"""History, read only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.store import Statement, Store
from decklog.ports.ledger import (
    Anchor,
    DecisionFilter,
    DecisionRow,
    Divergence,
    Effect,
    EffectKind,
    EffectState,
    Head,
    TickRow,
)

SEQ_MAX: Final = 2**63 - 1
_KINDS: Final = {kind.value: kind for kind in EffectKind}
_STATES: Final = {state.value: state for state in EffectState}


@dataclass(frozen=True, slots=True)
class Reader:
    """The reading part of the ledger; each call is one statement."""

    _store: Store

    def streams(self) -> Sequence[str]:
        return [row[0] for row in self._rows(statements.STREAMS)]

    def head(self, stream: str) -> Head | None:
        rows = self._rows(statements.HEAD, stream=stream)
        return to_head(rows[0]) if rows else None

    def ticks(self, stream: str, *, after: int, limit: int) -> Sequence[TickRow]:
        rows = self._rows(statements.TICKS, stream=stream, after=after, limit=limit)
        return [
            TickRow(
                tick=row[0],
                generation=row[1],
                cursor=row[2],
                now_ms=row[3],
                cycles=row[4],
                config_hash=row[5],
                rules=row[6],
                seq=row[7],
                payload=row[8],
                hash=row[9],
            )
            for row in rows
        ]

    def decisions(self, stream: str, *, after: int, limit: int) -> Sequence[DecisionRow]:
        rows = self._rows(statements.DECISIONS, stream=stream, after=after, limit=limit)
        return [self._decision(row) for row in rows]

    def select(
        self, stream: str, *, where: DecisionFilter, limit: int, newest_first: bool
    ) -> Sequence[DecisionRow]:
        names = ("namespace", "pod", "node", "kind", "reason", "pod_uid")
        wanted = {name: getattr(where, name) for name in names if getattr(where, name) is not None}
        rows = self._rows(
            statements.select_decisions(tuple(wanted), newest_first=newest_first),
            stream=stream,
            lo=0 if where.seq_first is None else where.seq_first,
            hi=SEQ_MAX if where.seq_last is None else where.seq_last,
            limit=limit,
            **wanted,
        )
        return [self._decision(row) for row in rows]

    def effects(self, stream: str, *, seq_first: int, seq_last: int) -> Sequence[Effect]:
        rows = self._rows(statements.EFFECTS, stream=stream, lo=seq_first, hi=seq_last)
        return [to_effect(self._store, row) for row in rows]

    def open_assumes(self, stream: str) -> Sequence[DecisionRow]:
        return [self._decision(row) for row in self._rows(statements.OPEN_ASSUMES, stream=stream)]

    def config(self, config_hash: str) -> bytes | None:
        rows = self._rows(statements.CONFIG, config_hash=config_hash)
        return rows[0][0] if rows else None

    def configs(self) -> Sequence[tuple[str, bytes]]:
        return [(row[0], row[1]) for row in self._rows(statements.CONFIGS)]

    def anchors(self, stream: str) -> Sequence[Anchor]:
        rows = self._rows(statements.ANCHORS, stream=stream)
        return [Anchor(chain=row[0], number=row[1], hash=row[2], now_ms=row[3]) for row in rows]

    def divergences(self, stream: str, *, limit: int) -> Sequence[Divergence]:
        rows = self._rows(statements.DIVERGENCES, stream=stream, limit=limit)
        return [Divergence(tick=row[0], seq=row[1], want=row[2], got=row[3]) for row in rows]

    def consumer_cursor(self, stream: str, consumer: str) -> tuple[int, int, int] | None:
        rows = self._rows(statements.CONSUMER_CURSOR, stream=stream, consumer=consumer)
        return (rows[0][0], rows[0][1], rows[0][2]) if rows else None

    def _rows(self, statement: Statement, **parameters: Any) -> Sequence[Any]:
        with self._store.read() as connection:
            return self._store.fetch(connection, statement, **parameters)

    def _decision(self, row: Any) -> DecisionRow:
        return DecisionRow(
            seq=row[0],
            tick=row[1],
            generation=row[2],
            kind=row[3],
            pod_uid=row[4],
            namespace=row[5],
            pod=row[6],
            node=row[7],
            reason=row[8],
            closes_seq=row[9],
            now_ms=row[10],
            payload=row[11],
            hash=row[12],
            decided_at=self._store.instant(row[13]),
        )


def to_head(row: Any) -> Head:
    return Head(
        stream=row[0],
        generation=row[1],
        tick=row[2],
        tick_hash=row[3],
        seq=row[4],
        seq_hash=row[5],
        cursor=row[6],
        now_ms=row[7],
        holder=row[8],
    )


def to_effect(store: Store, row: Any) -> Effect:
    return Effect(
        seq=row[0],
        n=row[1],
        kind=_KINDS[row[2]],
        pod_uid=row[3],
        state=_STATES[row[4]],
        owner=row[5],
        attempts=row[6],
        outcome=row[7],
        outcome_published=bool(row[8]),
        late_outcome=row[9],
        next_check_at=store.instant(row[10]),
    )

"""What binders share: each takes effects by one conditional update, so no two take the same."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from decklog.adapters.ledger import statements
from decklog.adapters.ledger.heart import Heart
from decklog.adapters.ledger.reader import to_effect
from decklog.adapters.ledger.store import Statement, Store
from decklog.ports.ledger import WORKER_TTL, Effect, EffectUpdate


@dataclass(frozen=True, slots=True)
class Effects:
    """The binders' part of the ledger; each call is one statement."""

    _store: Store
    _heart: Heart

    def work_as(self, stream: str, *, owner: str, kind: str) -> None:
        with self._store.write_once() as connection:
            self._store.run(
                connection, statements.BEAT_WORKER, stream=stream, owner=owner, kind=kind
            )
        self._heart.work(stream, owner, kind)

    def claim(
        self, stream: str, *, owner: str, decisions: Sequence[tuple[int, bytes]]
    ) -> Sequence[Effect]:
        if not decisions:
            return []
        if not self._store.is_postgresql:
            want = json.dumps([(seq, hash_.hex().upper()) for seq, hash_ in decisions])
            return self._take(statements.CLAIM, stream=stream, owner=owner, want=want)
        seqs = [seq for seq, _ in decisions]
        return self._take(
            statements.CLAIM,
            stream=stream,
            owner=owner,
            seqs=seqs,
            hashes=[hash_ for _, hash_ in decisions],
            lo=min(seqs),
            hi=max(seqs),
        )

    def sweep(self, stream: str, *, owner: str, seq_last: int, limit: int) -> Sequence[Effect]:
        return self._take(
            statements.SWEEP, stream=stream, owner=owner, seq_last=seq_last, limit=limit
        )

    def adopt(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        return self._take(
            statements.ADOPT, stream=stream, owner=owner, limit=limit, ttl=_seconds(WORKER_TTL)
        )

    def due(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        with self._store.read() as connection:
            rows = self._store.fetch(
                connection, statements.DUE, stream=stream, owner=owner, limit=limit
            )
        return [to_effect(self._store, row) for row in rows]

    def finish(
        self, stream: str, *, owner: str, updates: Sequence[EffectUpdate]
    ) -> Sequence[tuple[int, int]]:
        given = [
            (
                update.seq,
                update.n,
                update.state.value,
                update.outcome,
                update.publish,
                None if update.next_check is None else _seconds(update.next_check),
            )
            for update in updates
        ]
        names = ("seqs", "ns", "states", "outcomes", "publish", "next_checks")
        rows = self._change(statements.FINISH, names, given, stream=stream, owner=owner)
        return sorted((seq, n) for seq, n in rows)

    def unpublished(self, stream: str, *, owner: str, limit: int) -> Sequence[Effect]:
        with self._store.read() as connection:
            rows = self._store.fetch(
                connection,
                statements.UNPUBLISHED,
                stream=stream,
                owner=owner,
                limit=limit,
                ttl=_seconds(WORKER_TTL),
            )
        return [to_effect(self._store, row) for row in rows]

    def published(self, stream: str, *, effects: Sequence[Effect]) -> None:
        given = [(each.seq, each.n, each.state.value, each.outcome) for each in effects]
        names = ("seqs", "ns", "states", "outcomes")
        self._change(statements.PUBLISHED, names, given, stream=stream)

    def superseded(
        self, stream: str, *, effects: Sequence[tuple[int, str]]
    ) -> Sequence[tuple[int, str]]:
        if not effects:
            return []
        batch = self._batch(("seqs", "pod_uids"), effects)
        with self._store.read() as connection:
            rows = self._store.fetch(connection, statements.SUPERSEDED, stream=stream, **batch)
        return sorted((seq, pod_uid) for seq, pod_uid in rows)

    def _take(self, statement: Statement, **parameters: Any) -> Sequence[Effect]:
        with self._store.write_once() as connection:
            rows = self._store.fetch(connection, statement, **parameters)
        effects = [to_effect(self._store, row) for row in rows]
        return sorted(effects, key=lambda effect: (effect.seq, effect.n))

    def _change(
        self,
        statement: Statement,
        names: Sequence[str],
        given: Sequence[tuple[Any, ...]],
        **parameters: Any,
    ) -> Sequence[Any]:
        if not given:
            return []
        batch = self._batch(names, given)
        with self._store.write_once() as connection:
            result = self._store.run(connection, statement, **parameters, **batch)
            return list(result.fetchall()) if result.returns_rows else []

    def _batch(self, names: Sequence[str], given: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return a batch, whose first column is the seq, as the database takes it."""
        if not self._store.is_postgresql:
            return {"given": json.dumps(given)}
        columns = [list(column) for column in zip(*given, strict=True)]
        return dict(zip(names, columns, strict=True)) | {
            "lo": min(columns[0]),
            "hi": max(columns[0]),
        }


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()

"""The ledger loses its connection at every call; called again, the end is as if nothing had been.

The commit's own cases stand first: what was said about an unknown COMMIT is what everything else
relies on.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

import pytest

from decklog.adapters.ledger.sql import SqlLedger
from decklog.core.errors import Deposed, LedgerUnavailable
from decklog.ports.ledger import (
    Anchor,
    DeadLetter,
    Effect,
    EffectState,
    EffectUpdate,
    Head,
    TickCommit,
)
from tests.contract.ledgers import (
    STREAM,
    Decided,
    Ledgers,
    Loss,
    after,
    check_history,
    lead,
    losing,
    make_tick,
    names,
)
from tests.stack.postgres import PostgresServer

COPIED: Final = 12
"""Decisions of a tick that goes in by COPY."""
LETTER: Final = DeadLetter(
    topic="events", position=7, error="cannot decode", code_version="0.1.0", body=b"{"
)
ANCHOR: Final = Anchor(chain="tick", number=2, hash=b"t" * 32, now_ms=5)
KILLS: Final = 3
RECEIVE_BYTES: Final = 65536


@pytest.mark.parametrize("when", Loss)
@pytest.mark.parametrize(
    "count", [pytest.param(2, id="inserted"), pytest.param(COPIED, id="copied")]
)
def test_a_commit_that_failed_is_called_again_and_written_once(
    ledger: SqlLedger, when: Loss, count: int
) -> None:
    head = lead(ledger)
    commit = make_tick(head, [Decided()] * count)
    for _ in range(2):
        with losing(when), pytest.raises(LedgerUnavailable):
            ledger.commit(commit)
    ledger.commit(commit)
    following = make_tick(after(head, commit), [Decided()])
    ledger.commit(following)
    assert len(check_history(ledger)[1]) == count + 1


def test_a_commit_that_failed_is_not_called_done_because_of_its_number(ledger: SqlLedger) -> None:
    """Somebody else's tick of the same number stands there: only the hash tells them apart."""
    commit = make_tick(lead(ledger), [Decided()])
    with losing(Loss.BEFORE_COMMIT), pytest.raises(LedgerUnavailable):
        ledger.commit(commit)
    ledger.commit(make_tick(lead(ledger, holder="b"), [Decided()]))
    with pytest.raises(Deposed):
        ledger.commit(commit)
    assert len(check_history(ledger)[1]) == 1


@pytest.mark.parametrize("when", Loss)
def test_a_take_over_that_failed_is_called_again(ledger: SqlLedger, when: Loss) -> None:
    with losing(when), pytest.raises(LedgerUnavailable):
        lead(ledger)
    head = lead(ledger)
    ledger.commit(make_tick(head, [Decided()]))
    check_history(ledger)


@pytest.mark.parametrize("when", Loss)
def test_every_call_may_fail_and_be_called_again(
    ledgers: Ledgers, ledger: SqlLedger, when: Loss
) -> None:
    """Each run is a stream of its own, in which another call fails; all end as the first one."""
    undisturbed = _story(ledger, "undisturbed")
    for call in undisturbed:
        call()
    want = ledgers.dump("undisturbed")
    for failing in range(len(undisturbed)):
        stream = f"call {failing} fails"
        for number, call in enumerate(_story(ledger, stream)):
            if number == failing:
                with losing(when), pytest.raises(LedgerUnavailable):
                    call()
            call()
        assert ledgers.dump(stream) == want, f"call {failing}"


def _story(ledger: SqlLedger, stream: str) -> Sequence[Callable[[], object]]:
    """Return one of every call that writes, in an order in which they may come."""
    head = lead(ledger, stream=stream)
    first = make_tick(head, [Decided(pod="x"), Decided(), Decided()])
    second = make_tick(after(head, first), [Decided()] * COPIED, dead_letters=[LETTER])
    closes = Decided(kind="PodUnreserved", pod="x", closes_seq=1, effects=())
    third = make_tick(after(after(head, first), second), [closes])

    def finish() -> None:
        held = ledger.adopt(stream, owner="b", limit=10)
        ledger.finish(stream, owner="b", updates=[_final(each) for each in held])

    def publish() -> None:
        outcomes = ledger.effects(stream, seq_first=1, seq_last=3)
        ledger.published(stream, effects=outcomes[:2])

    return [
        lambda: ledger.put_config("c1", b"body"),
        lambda: ledger.commit(first),
        lambda: ledger.work_as(stream, owner="b", kind="binder"),
        lambda: ledger.claim(stream, owner="b", decisions=names(first)),
        lambda: ledger.commit(second),
        lambda: ledger.sweep(stream, owner="b", seq_last=5, limit=2),
        lambda: ledger.adopt(stream, owner="b", limit=10),
        lambda: ledger.commit(third),
        finish,
        publish,
        lambda: ledger.audited(stream, consumer="auditor", cursor=(9, 3, 16), anchors=[ANCHOR]),
        lambda: ledger.dead_letter(stream, [replace(LETTER, position=8)]),
        lambda: ledger.resign(stream, generation=head.generation),
    ]


def _final(effect: Effect) -> EffectUpdate:
    state = EffectState.REJECTED if effect.seq == 2 else EffectState.DONE
    return EffectUpdate(
        seq=effect.seq, n=effect.n, state=state, outcome=f"{effect.seq}", publish=True
    )


@pytest.mark.postgres
def test_a_commit_whose_reply_is_lost_on_the_way_is_found_done(
    postgresql_ledgers: Ledgers, postgres_server: PostgresServer
) -> None:
    """The server commits, and what it answers reaches nobody."""
    with deaf_proxy(postgres_server.port) as (port, deaf):
        url = postgresql_ledgers.url.replace(f":{postgres_server.port}/", f":{port}/")
        ledger = postgresql_ledgers.open(url=url)
        commit = make_tick(lead(ledger), [Decided()] * COPIED)
        deaf.set()
        with pytest.raises(LedgerUnavailable) as raised:
            ledger.commit(commit)
        deaf.clear()
        assert raised.value.__cause__ is not None
        assert len(postgresql_ledgers.open().decisions(STREAM, after=0, limit=100)) == COPIED
        ledger.commit(commit)
        assert len(check_history(ledger)[1]) == COPIED


@pytest.mark.postgres
def test_commits_go_on_over_kills_of_the_server(
    postgresql_ledgers: Ledgers, postgres_server: PostgresServer
) -> None:
    ledger = postgresql_ledgers.open()
    head = lead(ledger)
    for kill in range(KILLS):
        killer = threading.Timer(0.05 + 0.003 * kill, postgres_server.kill)
        killer.start()
        head, failed = _commit_until_lost(ledger, head)
        killer.join()
        postgres_server.restart()
        _insist(ledger, failed)
        head = after(head, failed)
    assert ledger.head(STREAM) == head
    check_history(ledger)


def _commit_until_lost(ledger: SqlLedger, head: Head) -> tuple[Head, TickCommit]:
    """Return the last head that was surely committed, and the tick after it."""
    while True:
        commit = make_tick(head, [Decided()] * COPIED)
        try:
            ledger.commit(commit)
        except LedgerUnavailable:
            return head, commit
        head = after(head, commit)


def _insist(ledger: SqlLedger, commit: TickCommit) -> None:
    """Call again until it works, as the runner does: other connections were lost too."""
    for _ in range(10):
        try:
            ledger.commit(commit)
        except LedgerUnavailable:
            continue
        return
    pytest.fail("the ledger does not come back")


def test_a_database_that_is_not_there_is_unavailability(ledgers: Ledgers) -> None:
    nowhere = (
        "postgresql://decklog_writer:secret@127.0.0.1:1/x"
        if ledgers.is_postgresql
        else ledgers.url.replace("ledger.db", "nowhere/ledger.db")
    )
    with pytest.raises(LedgerUnavailable, match="cannot use the ledger at") as raised:
        lead(ledgers.open(url=nowhere))
    assert "secret" not in str(raised.value)


@contextmanager
def deaf_proxy(server_port: int) -> Iterator[tuple[int, threading.Event]]:
    """Pass bytes to the server and back; when told to be deaf, lose what COMMIT is answered."""
    deaf = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_pass_on, args=(client, server_port, deaf)).start()

        accepting = threading.Thread(target=serve)
        accepting.start()
        try:
            yield port, deaf
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _pass_on(client: socket.socket, server_port: int, deaf: threading.Event) -> None:
    lost = threading.Event()
    with closing(client), socket.create_connection(("127.0.0.1", server_port)) as server:
        back = threading.Thread(target=_answer, args=(server, client, lost))
        back.start()
        while data := client.recv(RECEIVE_BYTES):
            if deaf.is_set() and b"COMMIT\0" in data:
                lost.set()
            server.sendall(data)
        server.shutdown(socket.SHUT_RDWR)
        back.join()


def _answer(server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
    while data := server.recv(RECEIVE_BYTES):
        if lost.is_set():
            break
        client.sendall(data)
    client.shutdown(socket.SHUT_RDWR)

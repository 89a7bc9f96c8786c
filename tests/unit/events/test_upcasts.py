"""Older versions are lifted to the newest, one version at a time."""

from typing import Final

import pytest

from decklog.events.codec import EVENT_TYPES, decode_event
from decklog.events.facts import BindFailed, Undecodable
from decklog.events.upcasts import UPCASTS, Body, Upcasts, split_type, upcast

SHIP: Final = "dev.decklog.ship.launched"


def name_the_port(body: Body) -> Body:
    return {**body, "port": "harbour"}


def split_the_crew(body: Body) -> Body:
    crew = body.pop("crew")
    return {**body, "officers": crew[:1], "sailors": crew[1:]}


EXAMPLE: Final[Upcasts] = {(SHIP, 1): name_the_port, (SHIP, 2): split_the_crew}


@pytest.mark.parametrize(
    ("version", "body", "want"),
    [
        pytest.param(
            1,
            {"crew": ["a", "b"]},
            {"port": "harbour", "officers": ["a"], "sailors": ["b"]},
            id="two steps",
        ),
        pytest.param(
            2,
            {"crew": ["a"], "port": "p"},
            {"port": "p", "officers": ["a"], "sailors": []},
            id="one step",
        ),
        pytest.param(3, {"port": "p"}, {"port": "p"}, id="already the newest"),
    ],
)
def test_a_body_is_lifted_step_by_step(version: int, body: Body, want: Body) -> None:
    assert upcast(SHIP, version, body, to=3, upcasts=EXAMPLE) == want


def test_a_missing_step_is_named() -> None:
    with pytest.raises(LookupError, match=r"^no upcast reads dev\.decklog\.ship\.launched\.v3$"):
        upcast(SHIP, 1, {"crew": []}, to=4, upcasts=EXAMPLE)


@pytest.mark.parametrize(
    ("ce_type", "want"),
    [
        ("dev.decklog.pod.assumed.v1", ("dev.decklog.pod.assumed", 1)),
        ("dev.decklog.pod.assumed.v12", ("dev.decklog.pod.assumed", 12)),
        ("dev.decklog.pod.assumed", ("dev.decklog.pod.assumed", 0)),
        ("dev.decklog.pod.assumed.v", ("dev.decklog.pod.assumed.v", 0)),
        ("dev.decklog.pod.assumed.v01", ("dev.decklog.pod.assumed.v01", 0)),
        ("dev.decklog.pod.assumed.v²", ("dev.decklog.pod.assumed.v²", 0)),
        (".v1", (".v1", 0)),
        ("", ("", 0)),
    ],
)
def test_a_type_is_split_at_its_version(ce_type: str, want: tuple[str, int]) -> None:
    assert split_type(ce_type) == want


def test_an_old_event_is_decoded_as_todays_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if bind.failed were at version 2, and version 1 had called the reason a cause."""
    base = "dev.decklog.bind.failed"
    monkeypatch.setattr("decklog.events.codec._NEWEST", {base: 2})
    monkeypatch.setattr("decklog.events.codec._EVENT_DECODERS", {})
    monkeypatch.setattr(
        "decklog.events.codec.EVENT_TYPES", {f"{base}.v2": EVENT_TYPES[f"{base}.v1"]}
    )
    upcasts: Upcasts = {(base, 1): lambda body: {**body, "reason": body["cause"]}}
    old, older = b'{"seq":4,"pod_uid":"u","cause":"Gone"}', b'{"seq":4,"pod_uid":"u"}'
    got = decode_event(f"{base}.v1", "k", old, upcasts=upcasts)
    assert got == BindFailed(seq=4, pod_uid="u", reason="Gone")
    assert isinstance(decode_event(f"{base}.v1", "k", older, upcasts=upcasts), Undecodable)
    assert isinstance(decode_event(f"{base}.v1", "k", old), Undecodable)


def test_upcasts_are_of_versions_that_no_class_has() -> None:
    assert not {f"{base}.v{version}" for base, version in UPCASTS} & set(EVENT_TYPES)

"""Where a test or the simulation makes the API server fail, and the four forms that it takes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from decklog.adapters.cluster.requests import ApiRequest
from decklog.ports.cluster import Answer


class BodyForm(StrEnum):
    """How the API server writes an error; a client has to read all of them."""

    STATUS = "status"
    BARE_STATUS = "bare-status"
    """A Status without `kind`, sent as text/plain: what a time-out gives."""
    TEXT = "text"
    """Plain text: what the overload filter and unknown paths give."""
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the client gets in place of the answer. Code 0: the connection breaks."""

    code: int = 0
    reason: str = ""
    message: str = ""
    form: BodyForm = BodyForm.STATUS
    retry_after_seconds: int | None = None

    @property
    def answer(self) -> Answer:
        """What is left of it for a client that reads it well."""
        told = self.form in (BodyForm.STATUS, BodyForm.BARE_STATUS)
        return Answer(
            code=self.code,
            reason=self.reason if told else "",
            message="" if self.form is BodyForm.EMPTY else self.message,
            retry_after_seconds=self.retry_after_seconds,
        )


OVERLOADED: Final = Fault(
    code=429,
    message="Too many requests, please try again later.",
    form=BodyForm.TEXT,
    retry_after_seconds=1,
)
TIMED_OUT: Final = Fault(
    code=504,
    reason="Timeout",
    message="Timeout: request did not complete within the allotted timeout",
    form=BodyForm.BARE_STATUS,
)
CONNECTION_LOST: Final = Fault()


class Faults(Protocol):
    """Asked around every request. It may take its time: that delays the request."""

    def before(self, request: ApiRequest) -> Fault | None:
        """Return what the client gets, without the request having any effect."""
        ...

    def after(self, request: ApiRequest, answer: Answer) -> Fault | None:
        """Return what the client gets, though the request had its effect."""
        ...


class NoFaults:
    def before(self, request: ApiRequest) -> Fault | None:
        return None

    def after(self, request: ApiRequest, answer: Answer) -> Fault | None:
        return None

"""Waiting at the start for what a service needs; once it has started, the loop waits for ever."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import structlog
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from decklog.core.errors import (
    ClusterUnavailable,
    LedgerUnavailable,
    LogUnavailable,
    TransientError,
)
from decklog.ports.clock import Clock

START_MAX: Final = timedelta(seconds=60)
"""How long a service waits for its broker, database and API server before it gives up (exit 5):
a supervisor then shows that it restarts, and why."""
RETRY_SECONDS_MAX: Final = 5.0

_log = structlog.get_logger()


def wait_for(
    attempt: Callable[[], Any],
    clock: Clock,
    stopping: Callable[[], bool],
    *,
    patience: timedelta = START_MAX,
) -> None:
    """Attempt until it works, for as long as there is patience.

    Raises the last TransientError, with advice, when there is none left; one attempt is made.
    """
    is_over = stop_after_delay(patience.total_seconds())
    retrying = Retrying(
        retry=retry_if_exception_type(TransientError),
        wait=wait_random_exponential(multiplier=0.2, max=RETRY_SECONDS_MAX),
        stop=lambda state: stopping() or is_over(state),
        sleep=lambda seconds: clock.sleep(timedelta(seconds=seconds)),
        before_sleep=_log_retry,
        reraise=True,
    )
    try:
        retrying(attempt)
    except TransientError as error:
        msg = f"{error}; {_advice(error)}"
        raise type(error)(msg) from error


def _advice(error: TransientError) -> str:
    match error:
        case LogUnavailable() if "UnknownTopic" in str(error):
            return "run `decklog topics apply`, or check DECKLOG_CLUSTER"
        case LogUnavailable():
            return "check that the broker runs, and DECKLOG_KAFKA__BOOTSTRAP"
        case LedgerUnavailable():
            return "check that the database runs, and the DECKLOG_PG__… settings"
        case ClusterUnavailable():
            return "check that the API server runs, and DECKLOG_KUBE__SERVER"
        case _:
            return "try again later"


def _log_retry(state: RetryCallState) -> None:
    assert state.outcome is not None
    _log.warning(
        "Could not start yet, will try again",
        error=str(state.outcome.exception()),
        attempt=state.attempt_number,
    )

"""What a plugin answers: a code with its reasons (kube-scheduler's Status)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6


REJECTED: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

CODE_NAMES: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
"""As Go prints them."""


@dataclass(frozen=True, slots=True)
class Status:
    """`err` is a wrapped error's text: it counts as the first reason."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    err: str | None = None
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code == Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code == Code.SKIP

    @property
    def is_rejected(self) -> bool:
        return self.code in REJECTED

    @property
    def all_reasons(self) -> tuple[str, ...]:
        return self.reasons if self.err is None else (self.err, *self.reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.all_reasons)


SUCCESS: Final = Status()
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(text: str) -> Status:
    return Status(Code.ERROR, (), text)


def wait() -> Status:
    return Status(Code.WAIT)

"""Exit codes: 1 is an answer, never an error (docs/reference/exit-codes.md)."""

from typing import Final

OK: Final = 0
NO: Final = 1
"""The answer is no: a break was found, a check failed."""
USAGE: Final = 2
UNCHANGED: Final = 3
"""Only with `--error-unchanged`."""
NOT_FOUND: Final = 4
UNAVAILABLE: Final = 5
REFUSED: Final = 6
BUG: Final = 70
INTERRUPTED: Final = 130
TERMINATED: Final = 143

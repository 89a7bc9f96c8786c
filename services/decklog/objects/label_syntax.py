"""What may be a label's key and value, in the words in which Kubernetes refuses the others."""

import re
from functools import lru_cache
from typing import Final

NAME_BYTES_MAX: Final = 63
PREFIX_BYTES_MAX: Final = 253
SYNTAX_CACHED: Final = 1 << 14
"""Keys, and values, whose check is remembered: some 4 MB; a cluster uses a few thousand."""

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PREFIX: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_CHARACTERS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME.pattern}')"
)
_VALUE_CHARACTERS: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '({_NAME.pattern})?')"
)
_PREFIX_CHARACTERS: Final = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
    "'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@lru_cache(maxsize=SYNTAX_CACHED)
def key_problem(key: str) -> str:
    """Say what is wrong with a label's key; empty when nothing is."""
    parts = key.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_CHARACTERS} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        )
    problems = _prefix_problems(parts[0]) if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > NAME_BYTES_MAX:
        problems.append(f"name part must be no more than {NAME_BYTES_MAX} bytes")
    if _NAME.fullmatch(name) is None:
        problems.append(f"name part {_CHARACTERS}")
    return "; ".join(problems)


@lru_cache(maxsize=SYNTAX_CACHED)
def value_problem(value: str) -> str:
    """Say what is wrong with a label's value; empty when nothing is."""
    problems = []
    if len(value.encode()) > NAME_BYTES_MAX:
        problems.append(f"must be no more than {NAME_BYTES_MAX} bytes")
    if value and _NAME.fullmatch(value) is None:
        problems.append(_VALUE_CHARACTERS)
    return "; ".join(problems)


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if len(prefix.encode()) > PREFIX_BYTES_MAX:
        problems.append(f"prefix part must be no more than {PREFIX_BYTES_MAX} bytes")
    if _PREFIX.fullmatch(prefix) is None:
        problems.append(_PREFIX_CHARACTERS)
    return problems

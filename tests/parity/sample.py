"""Writes the copy of the recorded decisions that the project carries.

`python -m tests.parity.sample DIR`: themes that must pass whole, and the cases, are taken whole; of
the others a few scenarios, evenly spread: nothing needs more before their plugins are there.
"""

import gzip
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.parity.conftest import CARRIED
from tests.parity.runner import CASES, themes
from tests.parity.test_decisions import WHOLE

SAMPLE_BYTES_MAX: Final = 60_000
"""Of a theme that is not taken whole: all of them together stay well under a megabyte."""


def main(folder: Path) -> None:
    for path in themes(folder):
        target = CARRIED / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.name.removesuffix(".jsonl.gz") in WHOLE or path.name == CASES:
            shutil.copyfile(path, target)
        else:
            target.write_bytes(sampled(gzip.decompress(path.read_bytes())))


def sampled(lines: bytes) -> bytes:
    """Return as many of the lines, evenly spread and compressed, as the limit allows."""
    scenarios = lines.splitlines(keepends=True)
    for step in range(1, len(scenarios) + 1):
        packed = gzip.compress(b"".join(scenarios[::step]), mtime=0)
        if len(packed) <= SAMPLE_BYTES_MAX:
            return packed
    return gzip.compress(min(scenarios, key=len), mtime=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

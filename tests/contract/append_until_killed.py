"""A process that appends three entries at a time and prints each position it is told."""

import itertools
import sys
from pathlib import Path

from decklog.adapters.log.embedded import EmbeddedLog
from decklog.adapters.log.kafka.log import KafkaLog
from decklog.ports.log import Log
from tests.contract.logs import make_entries

AT_A_TIME = 3


def main(adapter: str, place: str, name: str) -> None:
    log: Log = EmbeddedLog(Path(place), name) if adapter == "embedded" else KafkaLog(place, name)
    for first in itertools.count(0, AT_A_TIME):
        sys.stdout.write(f"{log.append(make_entries(AT_A_TIME, first=first))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

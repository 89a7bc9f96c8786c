"""Which host ports are in use on which rows. A set, as upstream: removing one user frees a port."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

ANY_IP: Final = "0.0.0.0"
Port = tuple[str, str, int]
"""(ip, protocol, port)"""


@dataclass(slots=True)
class PortTable:
    _rows: dict[tuple[str, int], dict[str, dict[int, None]]] = field(default_factory=dict)
    """(protocol, port) → ip → rows."""

    def add(self, row: int, port: Port) -> None:
        ip, protocol, number = port
        if number > 0:
            by_ip = self._rows.setdefault((protocol or "TCP", number), {})
            by_ip.setdefault(ip or ANY_IP, {})[row] = None

    def remove(self, row: int, port: Port) -> None:
        ip, protocol, number = port
        ip = ip or ANY_IP
        by_ip = self._rows.get((protocol or "TCP", number), {})
        rows = by_ip.get(ip, {})
        rows.pop(row, None)
        if ip in by_ip and not rows:
            del by_ip[ip]
            if not by_ip:
                del self._rows[protocol or "TCP", number]

    def in_use(self, row_count: int, port: Port) -> npt.NDArray[np.bool_]:
        """Return where the port would conflict: with the same ip, or with any if one is any."""
        ip, protocol, number = port
        used = np.zeros(row_count, dtype=np.bool_)
        by_ip = self._rows.get((protocol or "TCP", number)) if number > 0 else None
        if by_ip is None:
            return used
        ip = ip or ANY_IP
        wanted = list(by_ip) if ip == ANY_IP else [ip, ANY_IP]
        for other in wanted:
            used[list(by_ip.get(other, ()))] = True
        return used

    def of_row(self, row: int) -> list[Port]:
        """Return what is in use on the row, in no particular order."""
        return [
            (ip, protocol, number)
            for (protocol, number), by_ip in self._rows.items()
            for ip, rows in by_ip.items()
            if row in rows
        ]

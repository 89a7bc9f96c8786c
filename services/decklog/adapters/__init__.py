"""The world behind the ports: logs, ledgers, clusters, clocks; one vendor in one place.

An adapter implements one port and imports its own vendor only. A vendor's exception never
leaves it: it becomes an error of `core.errors`, with the original as its cause. Only
`bootstrap` and `simulation` import from here; services see ports.
"""

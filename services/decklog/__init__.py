"""decklog: an event-sourced Kubernetes scheduler.

Everything it sees and everything it decides is in a log, so any placement can be explained,
re-run, compared under another policy, and proved. The packages are layers, and imports go
downwards only: `cli` and `web`; `bootstrap`; `simulation`; the services beside `history` and
`adapters`; `runner`; `ports`; `core`; `events`; `objects`. `make lint` holds them to it.
"""

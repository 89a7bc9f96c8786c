"""Deciding, as a pure function of events, ticks, configuration and seed.

Imports numpy and the standard library; no clock, no I/O, no randomness, no threads, no logging.
`state.py` is the whole: cache and queue behind one `apply()`, and the cycle. Services drive it;
the audit side drives the very same code over history.
"""

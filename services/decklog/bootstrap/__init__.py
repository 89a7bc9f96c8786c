"""The composition root: the only package that knows every adapter.

Settings, logging, signals, the operations port and the wiring live here, and so do the programs
that are made of several services (`run`, `demo`, `sim serve`). Services get plain values and
ports from here, never `Settings`. `cli` calls this package and renders what it returns.
"""

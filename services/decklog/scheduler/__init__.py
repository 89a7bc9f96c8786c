"""The scheduler: rebuilds its state from log and ledger, leads or stands by, and commits ticks.

It reads the events log and the ledger, and writes the ledger, the decisions log and its own
marker in the events log. It has no access to the cluster. Deciding is `core/`'s.
"""

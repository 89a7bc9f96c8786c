"""The read side: questions about the past, answered from the events log and the ledger.

A question is a function of a `Source` and a moment; it returns plain data, and the command line and
the pages render it. Nothing here writes, and nothing here is asked by the services: `why`, `audit`,
`replay` and `verify` read what they wrote.
"""

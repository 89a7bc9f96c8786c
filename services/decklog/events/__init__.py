"""What is written down: every event and decision, defined once, and its bytes.

`facts.py` is pure data and the one definition; `codec.py` turns facts into bytes and back;
`upcasts.py` lifts older versions; `sealing.py` numbers, encodes and chains the decisions of a tick.
Nothing here reads a clock or does I/O. The core reads facts only.
"""

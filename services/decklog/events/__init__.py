"""What is written down: every event and decision, defined once, and its bytes.

`facts.py` (events) and `decisions.py` are pure data and the one definition; `codec.py` turns them
into bytes and back, by way of `pruning.py`; `upcasts.py` lifts older versions; `document.py`
writes the reference pages. Nothing here reads a clock, and only `document.py` touches files.
The core reads facts only.
"""

"""The watcher: brings what the API server says into the events log, in order and reduced.

It reads the cluster and writes the events log. It knows what it has published, compares with that
and publishes what differs; who hears something twice takes no harm. It needs no database.
"""

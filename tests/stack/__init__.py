"""A real Kafka broker and a real PostgreSQL server on loopback, without Docker.

The test fixtures and `make stack-up` start the same two. Nothing here knows decklog: the
broker's jars come from Maven, the server from the machine, and the rest is processes,
folders and ports.
"""

"""The log port: on SQLite for one machine (`embedded`), and on Kafka (`kafka`, `topics`).

`envelope` says what an entry looks like beside its body, and how large it may be; both
adapters keep to it, so what works on the embedded log works on Kafka.
"""

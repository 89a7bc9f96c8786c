"""The log on Kafka: one topic, one partition, kafka-python kept behind the port.

`log` is the adapter; it puts together a `writer`, a `reader` and what `cluster` answers about
the topic. `connection` makes the clients and turns their errors into ours. Nothing outside
this package imports kafka-python, whose network stack is young: the rules that keep its
defects away from us stand where they apply, each with a test in
tests/contract/test_kafka_defects.py.
"""

"""Protocols between the services and the world; tests/contract holds adapters to their promises.

A port speaks the words of the domain, never a vendor's. Services see ports only; adapters
implement them; the composition roots join the two.
"""

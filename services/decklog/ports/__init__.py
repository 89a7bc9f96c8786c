"""Protocols between the services and the world, with promises that tests/contract holds adapters to.

A port speaks the words of the domain, never a vendor's. Services see ports only; adapters
implement them; the composition roots join the two.
"""

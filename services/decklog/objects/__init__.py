"""Kubernetes objects, cut down to what scheduling reads.

Here live frozen dataclasses and the rules that need nothing but them: quantities, selectors,
tolerations, the requests of a pod. Nothing here reads files, clocks or the network, and nothing
imports another package of decklog. Objects are built from decoded dicts by `reduce`; everybody
above uses them.
"""

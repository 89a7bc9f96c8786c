"""The auditor: decides history again all the time, says where it differs, and anchors the chains.

It reads the events log and the ledger, and writes divergences and anchors with its own cursor. It
never touches the leader's path and never the cluster.
"""

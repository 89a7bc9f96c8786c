"""The scheduling framework: statuses, extension points, profiles, the diagnosis.

Plugins see the cluster through columns, one entry per node, and answer for all nodes at once.
"""

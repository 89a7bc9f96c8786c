"""Kube-scheduler's default plugins, one file each, named as in Kubernetes.

A plugin holds its arguments and answers for all nodes at once. `registry.py` is the one table of
them; nothing registers itself. Plugins read columns and objects; they never change the cluster.
"""

"""The binder: carries out what committed decisions ask of the cluster, and reports what came of it.

The only writer to the cluster. The ledger is its work list, the decisions log only wakes it and
carries content; claims keep any number of binders apart. An outcome that is not known is re-read,
never guessed.
"""

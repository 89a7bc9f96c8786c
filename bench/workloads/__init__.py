"""Workloads for the benches, made from a seed: nothing is downloaded, nothing is copied."""

"""Environments in Python, in worker processes that share a region."""

"""Helpers for the package's tests; not part of the wheel."""

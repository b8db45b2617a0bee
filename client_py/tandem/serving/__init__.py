"""Engines in Python: `Engine`, and `serve`, which serves one to trainers in any language."""

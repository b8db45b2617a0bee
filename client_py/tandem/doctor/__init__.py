"""`python -m tandem.doctor`: whether Tandem can run here, and what to do if it cannot.

Nothing here imports the rest of the package, NumPy included: parts that may be broken are tried in a child process,
which may fail, crash or hang. `tandem/__init__.py` imports only `tandem.errors`.
"""

"""`python -m tandem.doctor`: can Tandem run here, and what is to be done if it cannot.

Nothing here imports the rest of the package, NumPy included: what may be broken is tried in a child process, which
may fail, crash or hang. Hence `tandem/__init__.py` imports nothing either when this is what Python was started for.
"""

"""`tandemctl`: submits runs to a tandem-daemon, shows them, ends them and exports their events.

`command_line` parses; `main` does what it says. A module is imported once its command is run: `tandemctl --help` needs
the standard library alone.
"""

"""Engines in processes of their own: `launch_engine`, its options, its program."""

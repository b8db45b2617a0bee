"""`default_name`: the region's name of an engine whose program gives none."""

import os
import re
import sys
import uuid

_LONGEST_STEM = 24


def default_name() -> str:
    """Returns a new name that leads with the script's, for people, such as "train_ppo-12600-71646d"."""
    stem = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    shown = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_")[:_LONGEST_STEM] or "tandem"
    return f"{shown}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

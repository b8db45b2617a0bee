"""The program `python -m tandem.workers`, which the package itself executes."""

import sys

from tandem.workers.supervisor import main

sys.exit(main(sys.argv[1:]))

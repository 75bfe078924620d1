"""The lab's commands: ``python -m lab COMMAND``."""

from __future__ import annotations

import sys

from lab.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m forewarn` is the command `forewarn`."""

from __future__ import annotations

import sys

from forewarn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""The command `forewarn`, and `python -m forewarn`."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> int:
    """Run one command. Returns the exit status."""
    # The agent stays in memory, in small VMs: it is not to carry what the other commands need.
    is_agent = sys.argv[1:2] == ["agent"]
    module = import_module("forewarn.agent.main" if is_agent else "forewarn.cli.main")
    status = module.main(sys.argv[2:]) if is_agent else module.main()
    return int(status)


if __name__ == "__main__":
    sys.exit(main())

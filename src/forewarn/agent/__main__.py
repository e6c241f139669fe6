"""`python -m forewarn.agent`."""

from __future__ import annotations

import sys

from forewarn.agent.main import main

sys.exit(main())

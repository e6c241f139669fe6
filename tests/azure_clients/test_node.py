"""@azure/arm-compute, unmodified: every operation that it is promised.

Keeps N9, where there is a node that it runs on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from forewarn.testing.clouds import FLEET, WILLING, WillingGuests
from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

STORY: Final = Path(__file__).parent / "node" / "story.mjs"
# Where `make test` puts them.
MODULES: Final = Path(__file__).parents[2] / ".venv" / "node" / "node_modules"
SECONDS_MAX: Final = 300


@pytest.mark.skipif(not MODULES.is_dir(), reason="no node >= 20 when `make test` looked")
def test_the_javascript_clients_do_every_operation(tmp_path: Path) -> None:
    # Modules are looked for beside the program.
    program = tmp_path / "node"
    program.mkdir()
    shutil.copy(STORY, program)
    (program / "node_modules").symlink_to(MODULES)
    service = ServiceProcess(tmp_path / "data", FLEET, "--impacts-take", "1s")

    with service, WillingGuests(service, *WILLING):
        told: dict[str, str] = service.json("env")
        done = subprocess.run(
            ["node", str(program / STORY.name)],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
            env={**os.environ, **told},
        )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "not found"

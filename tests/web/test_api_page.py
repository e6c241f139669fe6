"""The lines of the page about the operators' API, run as they stand."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from forewarn.testing.control_planes import ControlPlane
from forewarn.testing.worlds import WEB, World

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "operating" / "api.md"
SECONDS_MAX: Final = 60


def test_what_the_page_says_can_be_typed() -> None:
    lines = re.findall(
        r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    with ControlPlane(World(WEB)) as plane:
        script = "\n".join(["set -euo pipefail", f"API={plane.base}", "TOKEN=ada", *lines])

        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    assert (done.returncode, done.stderr) == (0, "")
    # The stream told of the past, to the very end of an event.
    assert '"what":"canceled"' in done.stdout.partition("retry: ")[2]

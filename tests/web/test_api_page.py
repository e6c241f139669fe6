"""The lines of the page about the operators' API, run as they stand against a real service."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import forewarn
from forewarn.testing.processes import ServiceProcess

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "operating" / "api.md"
SOURCES: Final = Path(forewarn.__file__).parents[1]
SECONDS_MAX: Final = 60

FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
resource_group = "rg1"
update_domains = 3
enabled = "always"
""" + "".join(
    f"""
  [[scope.machine]]
  name = "web-{number}"
  address = "127.0.3.1{number}"
  host = "host-{number}"
"""
    for number in range(3)
)


def test_what_the_page_says_can_be_typed(tmp_path: Path) -> None:
    lines = re.findall(
        r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    with ServiceProcess(tmp_path / "data", FLEET) as service:
        command = f'forewarn() {{ PYTHONPATH="{SOURCES}" "{sys.executable}" -m forewarn "$@"; }}'
        script = "\n".join(["set -euo pipefail", command, f"DATA={service.data}", *lines])

        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            cwd=tmp_path,
        )

    assert (done.returncode, done.stderr) == (0, "")
    # The stream told of the past, to the very end of an event.
    assert '"what":"canceled"' in done.stdout.partition("retry: ")[2]
    assert (tmp_path / "night-shift.json").stat().st_mode & 0o077 == 0

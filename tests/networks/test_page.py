"""The lines of the page about links, run as they stand, on a host that the test makes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from forewarn.testing.networks import Namespace

pytestmark = [pytest.mark.end_to_end, pytest.mark.namespaces]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "operating" / "network.md"
FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
  [[scope.machine]]
  name = "web-0"
  address = "10.77.0.11"
  [[scope.machine]]
  name = "web-1"
  address = "10.77.0.12"
"""


def blocks(language: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no {language}"
    return "".join(found)


def test_what_the_page_says_can_be_typed(tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(blocks("toml"))
    (tmp_path / "fleet.toml").write_text(FLEET)
    command = tmp_path / "bin" / "forewarn"
    command.parent.mkdir()
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m forewarn "$@"\n')
    command.chmod(0o755)
    # Whatever fails, nothing is left running.
    begin = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    begin += f'set -euo pipefail\ncd "{tmp_path}"\nPATH="{command.parent}:$PATH"\n'
    with Namespace() as host:
        host.ip("link set lo up", "link add br0 type bridge")

        done = host.run("bash", "-c", begin + blocks("sh"))

        assert done.returncode == 0, done.stdout + done.stderr
        assert "tuntap add dev tap-web-0 mode tap" in done.stdout
        assert "nothing to do: this host is as wanted" in done.stdout
        assert "metadata http://169.254.169.254:80 on br0" in done.stdout
        assert "web-1" in done.stdout
        assert host.tell("nft", "list", "ruleset") == ""
        assert "tap-web-0" not in host.tell("ip", "link")

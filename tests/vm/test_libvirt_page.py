"""The lines of the page about libvirt, run as they stand, on a host that the test makes.

Three things are not as on the page: the machine is emulated, as not every host that tests has KVM; it
boots our small guest; and that one tells what it reads over a serial port.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="libvirt-python is not installed: pip install libvirt-python"
)

from forewarn.testing.guests import Diary, guest
from forewarn.testing.qemu_hosts import QemuHost

pytestmark = pytest.mark.vm

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "operating" / "libvirt.md"
SECONDS_MAX: Final = 400


def blocks(language: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no {language}"
    return "".join(found)


def replaced(xml: str, old: str, new: str) -> str:
    assert xml.count(old) == 1, f"the page has no {old}"
    return xml.replace(old, new)


def test_what_the_page_says_can_be_typed(tmp_path: Path, hosts: tuple[QemuHost, QemuHost]) -> None:
    host, diary = hosts[0], Diary(tmp_path / "serial.log")
    images = host.root / "lib" / "images"
    images.mkdir(exist_ok=True)
    (images / "web-0.img").write_bytes(bytes(1 << 20))
    boots = guest(ROOT / ".venv" / "guest").boot_xml(address="10.77.0.11")
    xml = replaced(blocks("xml"), "<domain type='kvm'>", "<domain type='qemu'>")
    xml = replaced(xml, "<boot dev='hd'/>", boots)
    xml = replaced(xml, "</devices>", f"{diary.device}</devices>")
    (tmp_path / "web-0.xml").write_text(xml)
    (tmp_path / "network.toml").write_text(blocks("toml"))
    command = tmp_path / "bin" / "forewarn"
    command.parent.mkdir()
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m forewarn "$@"\n')
    command.chmod(0o755)
    # Whatever fails, nothing is left running.
    begin = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
    begin += f'set -euo pipefail\ncd "{tmp_path}"\nPATH="{command.parent}:$PATH"\n'

    done = subprocess.run(
        [*host.inside, "bash", "-c", begin + blocks("sh")],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert diary.said("name") == ["web-0"]
    assert len(diary.said("approved")) == 1
    assert re.search(r"^host-a +open +web-0 ", done.stdout, re.MULTILINE)
    assert re.search(r"^host-a +drained +web-0 ", done.stdout, re.MULTILINE)
    assert "Freeze" in done.stdout
    assert host.connection.listAllDomains() == []

"""What `make run` shows: every line it prints works when pasted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[list[str]]:
    """What the demo prints, up to its last line, while it runs."""
    with (tmp_path / "log").open("w") as log:
        demo = subprocess.Popen(
            [sys.executable, "-m", "forewarn", "demo", "--data", str(tmp_path / "demo data")],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    assert demo.stdout is not None
    printed: list[str] = []
    for line in demo.stdout:
        printed.append(line.rstrip("\n"))
        if line.startswith("Ctrl-C"):
            break
    try:
        yield printed
    finally:
        demo.terminate()
        assert demo.wait(30) == 0
        demo.stdout.close()


def paste(line: str) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def test_every_line_of_the_demo_works_when_pasted(lines: list[str]) -> None:
    """Read it, approve it, see it go, see its record; then play another VM."""
    commands = [line.strip() for line in lines if line.startswith("   ") and " is " not in line]
    read, approve, again, show, announce = commands[:5]
    (as_batch_0,) = [line.strip() for line in lines if "# is batch_0" in line]

    (event,) = json.loads(paste(read))["Events"]
    assert (event["EventType"], event["Resources"]) == ("Freeze", ["web-0"])
    assert paste(approve) == ""
    deadline = time.monotonic() + 60
    while (document := json.loads(paste(again)))["Events"]:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert document["DocumentIncarnation"] > 1
    assert "Completed" in paste(show)
    assert "web-1" in paste(announce)
    assert json.loads(paste(as_batch_0))["Events"] == []
    ports = [line.split() for line in lines if line.startswith("   http://")]
    assert [name for *_, name in ports] == [
        "web-0", "web-1", "web-2", "batch_0", "batch_1", "db", "spot",
    ]  # fmt: skip

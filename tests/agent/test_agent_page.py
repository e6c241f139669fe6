"""The page on the agent: what it has one type is typed, in a VM of a real service; its tables are true."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from forewarn.agent import cases, rules
from forewarn.agent.hooks import Phase, variables
from forewarn.agent.main import main
from forewarn.agent.rules import Approve, Condition, OnFailure, Peers, Readiness, Rule, WithoutHooks
from forewarn.agent.settings import MEMBERS, parse_settings
from forewarn.client import Event
from forewarn.testing.processes import ServiceProcess

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
SECONDS_MAX: Final = 120
FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
enabled = "always"
[[scope.machine]]
name = "web-0"
address = "127.0.1.10"
"""
NOW: Final = datetime(2026, 11, 15, tzinfo=UTC)
EVENT: Final = Event(id="A", type="Reboot", status="Scheduled", resources=("web-0",))


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == kind]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Vm:
    """A place that has what the package brings, and what the page's lines need on their path."""

    def __init__(self, root: Path, service: ServiceProcess) -> None:
        self._root = root
        for directory in ("run", "bin", *(f"etc/forewarn/hooks.d/{one.value}" for one in Phase)):
            (root / directory).mkdir(parents=True)
        self.config = root / "etc/forewarn/agent.toml"
        self.config.write_text(
            f'state = "{root}/state"\nhooks = "{root}/etc/forewarn/hooks.d"\n'
            f'listen = "127.0.0.1:{free_port()}"\n'
        )
        self.agent = [sys.executable, "-m", "forewarn.agent"]
        self._put("forewarn-agent", f'exec {" ".join(self.agent)} "$@" --config {self.config}')
        self._put("forewarn", f'exec {sys.executable} -m forewarn "$@" --data {service.data}')
        self._put("sudo", 'exec "$@"')
        self.environment = {
            **os.environ,
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "FOREWARN_ENDPOINT": service.metadata[0],
        }

    def _put(self, name: str, line: str) -> None:
        file = self._root / "bin" / name
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    def type(self, lines: str) -> str:
        """What came of lines that were typed; they must all be well."""
        here = re.sub(r"(?<= )/(etc|run)/", rf"{self._root}/\1/", lines)
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{here}"],
            capture_output=True, text=True, timeout=SECONDS_MAX, check=False, cwd=self._root,
            env=self.environment,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout.replace(str(self._root), "")


@pytest.mark.end_to_end
def test_from_nothing_to_a_drained_vm(tmp_path: Path) -> None:
    hooks, test, announce, status, explain = blocks("sh")
    tested, standing, explained = blocks("")
    with ServiceProcess(tmp_path / "data", FLEET, "--metadata", "127.0.0.1:0=web-0") as service:
        vm = Vm(tmp_path / "vm", service)
        drained = tmp_path / "vm/run/maintenance"

        vm.type(hooks)
        assert stable(vm.type(test)) == stable(tested)
        assert not drained.exists()

        vm.type(announce)
        with subprocess.Popen(
            [*vm.agent, "--config", str(vm.config)],
            stderr=subprocess.DEVNULL,
            env=vm.environment,
        ) as agent:
            end = time.monotonic() + SECONDS_MAX
            said = ""
            while "approval  given" not in said and time.monotonic() < end:
                said = vm.type(status) if answers(vm) else ""
            assert drained.exists()
            agent.send_signal(signal.SIGTERM)
            agent.wait(SECONDS_MAX)

        assert of_runs(said) == of_runs(standing)
        assert stable(explained) in stable(vm.type(explain))


def answers(vm: Vm) -> bool:
    """Whether the agent is there by now."""
    return main(["status", "--config", str(vm.config)]) == 0


def stable(text: str) -> str:
    """Without what differs each time: instants, and lengths of time."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|\d+m(\d+s)?", "…", text)


def of_runs(text: str) -> list[str]:
    """What a status says of runs and approvals."""
    return [line for line in text.splitlines() if line.startswith(("prepare", "approval", "web"))]


def test_its_files_are_understood() -> None:
    whole, example = blocks("toml")

    settings = parse_settings(whole, "agent.md")
    few = parse_settings(example, "agent.md")

    assert settings.rules[0].only == (Condition.LEADER, Condition.NOT_LAST)
    assert [rules.chosen(few.rules, event, "x")[0] for event in (freeze(9), freeze(11))] == [1, 3]
    for title, members in MEMBERS.items():
        for member in members:
            assert re.search(rf"^[# \[]*{member}( =|\]+)", whole, re.MULTILINE), (title, member)


def freeze(seconds: int) -> Event:
    return Event(id="A", type="Freeze", status="Scheduled", duration=timedelta(seconds=seconds))


def test_the_table_of_approvals_is_true() -> None:
    header = (
        "| `approve` | `on_failure` | `without_hooks` | hooks run | all are ready | one failed |"
    )
    _, rows = PAGE[PAGE.index(header) :].split("\n|---|---|---|---|---|---|---|\n", 1)
    stages = (Readiness.UNDER_WAY, Readiness.READY, Readiness.FAILED, Readiness.WITHOUT)
    seen: set[Rule] = set()
    for row in rows.split("\n\n")[0].splitlines():
        approve, failures, without, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        for on_failure in told(failures, OnFailure):
            for without_hooks in told(without, WithoutHooks):
                rule = Rule(
                    approve=Approve(approve.strip("`")),
                    on_failure=OnFailure(on_failure),
                    without_hooks=WithoutHooks(without_hooks),
                )
                seen.add(rule)
                verdicts = [rules.judge(rule, EVENT, "web-0", one, Peers()) for one in stages]
                assert cells == ["yes" if one.approves else "no" for one in verdicts], row
    assert len(seen) == len(Approve) * len(OnFailure) * len(WithoutHooks)


def told(cell: str, kind: type[OnFailure | WithoutHooks]) -> list[str]:
    return [str(one.value) for one in kind] if cell == "any" else re.findall(r"`([^`]+)`", cell)


def test_the_page_knows_every_word() -> None:
    environment = variables(EVENT, Phase.UNDO, name="", deadline=NOW, attempt=1)
    for word in (*environment, *(one.value for one in Phase), *(one.value for one in Condition)):
        assert f"`{word}`" in PAGE, word


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert cases.MARGIN.seconds == 1
    assert "until one second before NotBefore" in PAGE
    assert f"or\n{cases.LIMIT.seconds // 60} minutes" in PAGE
    assert f"{cases.GRACE.seconds} seconds apart" in PAGE
    assert f"still there {cases.HELD.seconds} seconds after it" in PAGE

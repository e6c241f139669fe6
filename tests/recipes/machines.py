"""VMs, as far as a recipe knows one: an address, files, programs that run there, and the agent.

Each has a directory for its `/`, and an address of loopback's, so that what pages say of 10.0.0.4:8080 is
so but for the first numbers. What runs there carries the VM's mark in its environment: a VM that
loses its power loses all of it, hooks included.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import forewarn
from forewarn.testing.processes import request
from tests.recipes.pages import ROOT, Page

PATIENCE_SECONDS: Final = 60
LOOK_SECONDS: Final = 0.02
MARK: Final = "RECIPE_VM"
AGENT_PORT: Final = 8171
SOURCE: Final = str(Path(forewarn.__file__).parents[1])
_numbers: Final = itertools.count(os.getpid() * 7)


def subnet() -> str:
    """What the addresses of one test begin with, such as "127.83.12."."""
    number = next(_numbers)
    return f"127.{1 + number // 256 % 254}.{number % 256}."


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait in real time for what other processes do."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"not within {PATIENCE_SECONDS} s: {what}"
        time.sleep(LOOK_SECONDS)


class Vm:
    """One VM. Its service is told by `url`: whoever asks there is this VM."""

    def __init__(self, name: str, folder: Path, *, net: str, host: int, url: str = "") -> None:
        self.name = name
        self.address = f"{net}{host}"
        self.root = folder / name
        self._net = net
        self._url = url
        self._programs: list[subprocess.Popen[bytes]] = []
        for path in ("etc/forewarn", "run", "var/lib", "var/log"):
            (self.root / path).mkdir(parents=True)

    # -- its files -----------------------------------------------------------------------------

    def path(self, path: str) -> Path:
        return self.root / path.removeprefix("/")

    def here(self, text: str) -> str:
        """A text of a page, as it is for this VM."""
        text = text.replace("10.0.0.", self._net)
        for folder in ("/etc/forewarn", "/run/", "/var/lib/", "/var/log/", "/usr/local/"):
            text = text.replace(folder, f"{self.root}{folder}")
        return text

    def write(self, path: str, text: str) -> Path:
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.here(text), encoding="utf-8")
        return file

    def type(self, text: str) -> str:
        """What a shell says to lines of a page, typed in a clone by somebody on this VM."""
        programs = self.path("bin")
        if not programs.is_dir():
            programs.mkdir()
            agent = programs / "forewarn-agent"
            agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forewarn agent "$@"\n')
            agent.chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", self.here(text)],
            cwd=ROOT,
            env={**self.environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def follow(self, page: Page, *files: str, agent: int = 1) -> None:
        """Do as a page says: write its files, with its agent's of this number, and install its hook."""
        for file in files:
            self.write(file, page.file(file))
        told = self.here(page.file("/etc/forewarn/agent.toml", number=agent))
        own = f'hooks = "{self.path("etc/forewarn/hooks.d")}"\n'
        self.write("/etc/forewarn/agent.toml", own + told)

    # -- what runs there -----------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FOREWARN_", "EVENT_")) and not name.lower().endswith("_proxy")
        }
        return {
            **kept,
            "FOREWARN_ENDPOINT": self._url,
            "STATE_DIRECTORY": str(self.path("var/lib/forewarn-agent")),
            "PYTHONPATH": SOURCE,
            MARK: str(self.root),
        }

    def start(self, words: Sequence[str | Path], log: str) -> subprocess.Popen[bytes]:
        """Start a program there, which writes a log."""
        with self.path(f"var/log/{log}").open("ab") as file:
            program = subprocess.Popen(
                list(map(str, words)), env=self.environment, stdout=file, stderr=file
            )
        self._programs.append(program)
        return program

    def start_agent(self) -> None:
        """Start the agent, and wait until it is at work."""
        config = self.path("etc/forewarn/agent.toml")
        program = self.start([sys.executable, "-m", "forewarn", "agent", "--config", config], "agent")

        def is_well() -> bool:
            assert program.poll() is None, self.log("agent")
            return self.asked("/healthz") == 200

        wait_until(is_well, f"the agent of {self.name} answers")

    def asked(self, path: str) -> int:
        """The status of the agent's answer, or 0."""
        try:
            return request(f"http://{self.address}:{AGENT_PORT}", "GET", path).status
        except OSError:
            return 0

    def log(self, name: str) -> str:
        return self.path(f"var/log/{name}").read_text(encoding="utf-8", errors="replace")

    def power_off(self) -> None:
        """End everything that runs there, at once."""
        while marked := self._running():
            for pid in marked:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self._reap()
        self._reap()

    def _reap(self) -> None:
        for program in self._programs:
            if program.poll() is None:
                program.kill()
            program.wait(PATIENCE_SECONDS)
        self._programs.clear()

    def _running(self) -> list[int]:
        """Whatever runs with the VM's mark."""
        mark = f"{MARK}={self.root}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in variables:
                found.append(int(folder.name))
        return found

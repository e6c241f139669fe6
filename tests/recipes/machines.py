"""VMs, as far as a recipe knows one: an address, files, programs that run there, and the agent.

Each has a directory for its `/`, and an address of loopback's, so that what pages say of 10.0.0.4:8080 is
so but for the first numbers. What runs there carries the VM's mark in its environment, or has its process id
in one of the VM's files: a VM that loses its power loses all of it, hooks included.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.recipes.pages import ROOT, Page

import forewarn
from forewarn.testing.processes import request

PATIENCE_SECONDS: Final = 60
# A deadline that no test waits for.
A_DAY: Final = 86400
LOOK_SECONDS: Final = 0.02
MARK: Final = "RECIPE_VM"
AGENT_PORT: Final = 8171
AGENT_FILE: Final = "/etc/forewarn/agent.toml"
# What pages say of a VM's own files, where a path begins with it.
OWN_PATHS: Final = re.compile(r"(?<![\w./-])/(?:etc/forewarn|run|var/lib|var/log|usr/local)/")
# Daemons are where only root looks.
PATH: Final = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
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


def status(base: str, path: str) -> int:
    """What is answered there, or 0."""
    try:
        return request(base, "GET", path).status
    except OSError:
        return 0


class Vm:
    """One VM. Its service is told by `url`: whoever asks there is this VM."""

    def __init__(self, name: str, folder: Path, *, net: str, host: int, url: str = "") -> None:
        self.name = name
        self.address = f"{net}{host}"
        self.root = folder / name
        self._net = net
        self._url = url
        self._programs: list[subprocess.Popen[bytes]] = []
        # Of daemons that write over their environment.
        self.pid_files: list[Path] = []
        for path in ("etc/forewarn", "run", "var/lib", "var/log"):
            (self.root / path).mkdir(parents=True)

    # -- its files -----------------------------------------------------------------------------

    def path(self, path: str) -> Path:
        return self.root / path.removeprefix("/")

    def here(self, text: str) -> str:
        """A text of a page, as it is for this VM."""
        text = text.replace("10.0.0.", self._net)
        return OWN_PATHS.sub(lambda found: f"{self.root}{found[0]}", text)

    def write(self, path: str, text: str, **instead: str) -> Path:
        """Write a file as a page has it, but for the settings that are said."""
        text = self.here(text)
        for name, value in instead.items():
            text, count = re.subn(rf"(?m)^{name}=.*", f'{name}="{value}"', text)
            assert count == 1, f"{path} has no {name}"
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def type(self, text: str) -> str:
        """What a shell says to lines of a page, typed in a clone by somebody on this VM."""
        programs = self.path("bin")
        if not programs.is_dir():
            programs.mkdir()
            agent = programs / "forewarn-agent"
            agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forewarn agent "$@"\n')
            agent.chmod(0o755)
        path = f"{programs}{os.pathsep}{PATH}"
        done = subprocess.run(
            ["sh", "-ec", self.here(text)],
            cwd=ROOT,
            env={**self.environment, "PATH": path, MARK: str(self.root)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, page: Page, *, number: int = 1) -> None:
        """Type what installs the page's hook, and write its file for the agent, the one of this number."""
        if number == 1:
            self.type(page.lines[0])
        own = [
            f'hooks = "{self.path("etc/forewarn/hooks.d")}"',
            f'state = "{self.path("var/lib/forewarn-agent")}"',
        ]
        told = self.here(page.file(AGENT_FILE, number=number))
        if not told.count("\nlisten = "):
            own.append(f'listen = "{self.address}:{AGENT_PORT}"')
        self.path(AGENT_FILE).write_text("\n".join([*own, told]), encoding="utf-8")

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
            "PATH": PATH,
            "PYTHONPATH": SOURCE,
        }

    def start(
        self,
        words: Sequence[str | Path],
        log: str,
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program there, which writes a log."""
        with self.path(f"var/log/{log}").open("ab") as file:
            program = subprocess.Popen(
                list(map(str, words)),
                cwd="/",
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                env={**(self.environment if env is None else env), MARK: str(self.root)},
                stdout=file,
                stderr=file,
            )
        self._programs.append(program)
        return program

    def hook(self, name: str, *, seconds: float, attempt: int = 1) -> subprocess.Popen[str]:
        """Start an installed hook as the agent would, with so long until its deadline."""
        event = {
            "EVENT_PHASE": name.partition("/")[0],
            "EVENT_NAME": self.name,
            "EVENT_TYPE": "Reboot",
            "EVENT_DEADLINE": str(int(time.time() + seconds)),
            "EVENT_ATTEMPT": str(attempt),
            MARK: str(self.root),
        }
        return subprocess.Popen(
            [self.path(f"etc/forewarn/hooks.d/{name}")],
            cwd="/",
            env={**self.environment, **event},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_agent(self) -> None:
        """Start the agent, and wait until it is at work."""
        words: list[str | Path] = [
            sys.executable,
            "-m",
            "forewarn",
            "agent",
            "--config",
            self.path(AGENT_FILE),
        ]
        program = self.start(words, "agent")

        def is_well() -> bool:
            assert program.poll() is None, self.log("agent")
            return f"this VM is {self.name}" in self.log("agent")

        wait_until(is_well, f"the agent of {self.name} is at work")

    def says(self, path: str) -> int:
        """The status of its agent's answer."""
        return status(f"http://{self.address}:{AGENT_PORT}", path)

    def log(self, name: str) -> str:
        return self.path(f"var/log/{name}").read_text(encoding="utf-8", errors="replace")

    def power_off(self) -> None:
        """End everything that runs there, at once."""
        wait_until(lambda: not self._killed(), f"nothing runs on {self.name} any more")
        for program in self._programs:
            program.wait(PATIENCE_SECONDS)
        self._programs.clear()

    def _killed(self) -> set[int]:
        """Whatever ran there still; it is killed."""
        roots = self._marked() | self._in_files()
        # Who is stopped starts nobody in the place of whoever ends first.
        _signal(roots, signal.SIGSTOP)
        found = _with_children(roots)
        _signal(found, signal.SIGKILL)
        for program in self._programs:
            program.poll()
        return found

    def _marked(self) -> set[int]:
        mark = f"{MARK}={self.root}".encode()
        return {pid for pid in _parents() if mark in _read(pid, "environ").split(b"\0")}

    def _in_files(self) -> set[int]:
        texts = [file.read_text().split() for file in self.pid_files if file.exists()]
        # After it was killed its number stays in the file, and may be somebody else's one day.
        for file in self.pid_files:
            file.unlink(missing_ok=True)
        return {int(words[0]) for words in texts if words} & set(_parents())


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        # It ended meanwhile, or is somebody's whom we may not look at.
        return b""


def _parents() -> dict[int, int]:
    """Every process that runs, and its parent."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # After the name, which may have blanks and parentheses of its own.
        state, parent, *_ = _read(int(folder.name), "stat").rpartition(b")")[2].split() or (b"Z", 0)
        if state not in {b"Z", b"X"}:
            found[int(folder.name)] = int(parent)
    return found


def _with_children(pids: set[int]) -> set[int]:
    parents = _parents()
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found

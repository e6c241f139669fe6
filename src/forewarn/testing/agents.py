"""A real agent in a process of its own: its files, its log, and its endpoint."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from forewarn.testing.processes import HttpReply, request

SECONDS_MAX: Final = 20.0
_LISTENING: Final = re.compile(r"listening at (http://\S+)")


class AgentProcess:
    """Started when it is entered, stopped when it is left."""

    def __init__(
        self,
        directory: Path,
        endpoint: str,
        more: str = "",
        *,
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`more` is the rest of the agent's file, and `environment` all of the process's, if not ours."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "agent.toml"
        self.file.write_text(
            f'endpoint = "{endpoint}"\nstate = "{directory}/state"\nhooks = "{directory}/hooks"\n'
            f'listen = "{listen}"\n{more}',
            encoding="utf-8",
        )
        self.log: list[str] = []
        self._environment = environment
        self._news = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def hook(self, phase: str, name: str, script: str) -> None:
        """Put a hook there, which the shell runs."""
        file = self.directory / "hooks" / phase / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and have its log read."""
        self._process = subprocess.Popen(  # noqa: S603 - the agent itself
            [sys.executable, "-m", "forewarn.agent", "run", "--config", str(self.file)],
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None, "it is a pipe"
        for line in process.stderr:
            with self._news:
                self.log.append(line.rstrip("\n"))
                self._news.notify_all()

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None, "it was started"
        return self._process

    def stop(self) -> int:
        """Have it end, and say how it did."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended, and say how it did."""
        try:
            return self.process.wait(SECONDS_MAX)
        finally:
            self.process.kill()
            self.process.wait()
            if self._reader is not None:
                self._reader.join()
            if self.process.stderr is not None:
                self.process.stderr.close()

    def wait_for_log(self, words: str) -> str:
        """Wait for a line in which these words are, and return it."""
        return self._wait_for(lambda: next((one for one in self.log if words in one), ""))

    def _wait_for(self, find: Callable[[], str]) -> str:
        with self._news:
            found = self._news.wait_for(find, SECONDS_MAX)
        assert found, "\n".join(self.log)
        return found

    @property
    def url(self) -> str:
        """Where its own endpoint is, once it is."""
        found = _LISTENING.search(self.wait_for_log("listening at"))
        assert found is not None, "it says where"
        return found[1]

    def get(self, target: str) -> HttpReply:
        """What its own endpoint answers."""
        return request(self.url, "GET", target)

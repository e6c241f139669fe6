"""An emulator in a process of its own, asked over real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from forewarn.testing.processes import PATH, STOP_SECONDS_MAX, VERSION, HttpReply, request

ROOT: Final = "/fabric/v1"


class EmulatorProcess:
    """`forewarn emulate` for as long as the `with` lasts; it must end with status 0."""

    def __init__(self, log: Path, *options: str) -> None:
        command = [sys.executable, "-m", "forewarn", "emulate", "--json", *options]
        # Where its terminal would be.
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                command, stdout=subprocess.PIPE, stderr=out, text=True
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, log.read_text()
        # What the emulator says of itself.
        self.told: dict[str, Any] = json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Have it end, and see that it does."""
        self.process.terminate()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.wait(STOP_SECONDS_MAX) == 0

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """What the control API answers; it must not refuse."""
        reply = self.try_to(method, path, body)
        assert reply.status < 300, reply.body
        return reply.json

    def try_to(self, method: str, path: str, body: object = None) -> HttpReply:
        """The same, whatever comes of it."""
        headers = {"Authorization": f"Bearer {self.told['token']}"}
        sent = None if body is None else json.dumps(body).encode()
        return request(self.told["control"], method, f"{ROOT}{path}", headers=headers, body=sent)

    def announce(self, kind: str, machine: str, **options: object) -> Any:  # noqa: ANN401 - JSON
        """The event that was announced to one VM."""
        wish = {"type": kind, "machines": [machine], **options}
        (event,) = self.ask("POST", "/events", wish)["events"]
        return event

    def advance(self, **how: object) -> Any:  # noqa: ANN401 - JSON
        """Let time pass; what the clock shows then, and whether something happened."""
        return self.ask("POST", "/emulator/clock/advance", how)

    def guest(self, machine: str, method: str = "GET", body: object = None) -> HttpReply:
        """What a VM is answered that reads its document, or posts to it."""
        sent = None if body is None else json.dumps(body).encode()
        target = f"{PATH}?api-version={VERSION}"
        base = self.told["machines"][machine]
        return request(base, method, target, headers={"Metadata": "true"}, body=sent)

    def seen_by(self, machine: str) -> list[tuple[str, str, str]]:
        """The type, status and NotBefore of each event that a VM reads."""
        events = self.guest(machine).json["Events"]
        return [(e["EventType"], e["EventStatus"], e["NotBefore"]) for e in events]

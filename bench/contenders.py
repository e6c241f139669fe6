"""The servers that are measured, each one process on one core."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench import measuring
from bench.callers import Server, address
from forewarn.testing.processes import HttpReply, ServiceProcess

HERE: Final = Path(__file__).parent
START_SECONDS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that runs."""

    name: str
    pid: int
    server: Server


class Service(ServiceProcess):
    """`forewarn serve` on the server's core, and its operator."""

    def start(self) -> None:
        super().start()
        measuring.pin(self.pid, measuring.cores()[0])

    @property
    def contender(self) -> Contender:
        place = urlsplit(self.metadata[0])
        assert place.hostname is not None
        assert place.port is not None
        return Contender("forewarn", self.pid, Server(place.hostname, place.port))

    def call(self, path: str, body: Mapping[str, object]) -> HttpReply:
        """Ask for something as an operator; it must be granted."""
        reply = self.ask(
            "POST",
            f"/fabric/v1{path}",
            headers={**self.authorized, "Content-Type": "application/json"},
            body=json.dumps(body).encode(),
        )
        assert reply.status in (200, 201), reply
        return reply

    def announce_to(self, *machines: str, notice_seconds: int = 7200) -> list[str]:
        """Announce a reboot; the events' ids."""
        wish = {"type": "Reboot", "machines": machines, "notice_seconds": notice_seconds}
        return [event["event_id"] for event in self.call("/events", wish).json["events"]]

    def cancel(self, event_id: str) -> None:
        self.call(f"/events/{event_id}/cancel", {})


@contextmanager
def nginx(directory: Path, document: bytes, guests: int) -> Iterator[Contender]:
    """Nginx with bench/nginx.conf and this document."""
    port = _free_port()
    fields = {
        "directory": str(directory),
        "port": str(port),
        "callers": "\n".join(f"        {address(n)} set-{n};" for n in range(guests)),
        "incarnation": str(json.loads(document)["DocumentIncarnation"]),
        "body": document.decode(),
    }
    text = (HERE / "nginx.conf").read_text()
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value)
    file = directory / "nginx.conf"
    file.write_text(text)
    program = nginx_program()
    assert program is not None, "say so before"
    with _running("nginx", [program, "-p", str(directory), "-c", str(file)], port) as contender:
        yield contender


def nginx_program() -> str | None:
    """Where nginx is; Debian keeps it away from the paths of ordinary users."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def flask(directory: Path, documents: Mapping[str, Any]) -> Iterator[Contender]:
    """bench/flask_app.py under gunicorn: Flask's own server closes after each answer."""
    port = _free_port()
    file = directory / "documents.json"
    file.write_text(json.dumps(documents))
    options = ["--workers=1", "--threads=8", "--keep-alive=75", f"--bind=127.0.0.1:{port}"]
    options += ["--worker-tmp-dir=/dev/shm", f"--env=BENCH_DOCUMENTS={file}"]
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--log-level=error",
        *options,
        "bench.flask_app:app",
    ]
    with _running("flask", command, port) as contender:
        yield replace(contender, pid=_child(contender.pid))


@contextmanager
def go(directory: Path, documents: Mapping[str, Any]) -> Iterator[Contender]:
    """Go's net/http with bench/server.go, on one processor."""
    port = _free_port()
    file = directory / "documents.json"
    file.write_text(json.dumps(documents))
    compiler = shutil.which("go")
    assert compiler is not None, "say so before"
    program = directory / "server"
    build = [compiler, "build", "-o", str(program), str(HERE / "server.go")]
    subprocess.run(build, check=True)
    with _running("go", [str(program), str(port), str(file)], port) as contender:
        yield contender


@contextmanager
def _running(name: str, command: list[str], port: int) -> Iterator[Contender]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _await_port(process, port)
        measuring.pin(process.pid, measuring.cores()[0])
        yield Contender(name, process.pid, Server("127.0.0.1", port))
    finally:
        process.terminate()
        process.wait()


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        assert process.poll() is None, "it did not start: see what it said"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens on port {port}")


def _child(pid: int) -> int:
    """The one process that another has started; it runs where its parent may."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    measuring.pin(int(child), measuring.cores()[0])
    return int(child)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""A real service in a process of its own: started, asked over real sockets, killed, started again."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode, urlsplit

VERSION: Final = "2020-07-01"
PATH: Final = "/metadata/scheduledevents"
START_SECONDS_MAX: Final = 30
STOP_SECONDS_MAX: Final = 30


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back over the socket."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the service said
        return json.loads(self.body)


def request(  # noqa: PLR0913 - all that an HTTP request can vary in
    base: str,
    method: str,
    target: str,
    *,
    source: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    seconds_max: float = 30,
    ca: Path | None = None,
) -> HttpReply:
    """One request on a connection of its own, from this source address.

    Where the base is https, `ca` is the certificate to trust.
    """
    connection = connect(base, source=source, seconds_max=seconds_max, ca=ca)
    try:
        connection.request(method, target, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return HttpReply(answer.status, names, answer.read())
    finally:
        connection.close()


def connect(
    base: str, *, source: str = "", seconds_max: float = 30, ca: Path | None = None
) -> http.client.HTTPConnection:
    """A connection to a service, to be opened by its first request."""
    place = urlsplit(base)
    assert place.hostname is not None, "a base URL names its host"
    from_source = (source, 0) if source else None
    if place.scheme == "http":
        return http.client.HTTPConnection(
            place.hostname, place.port, timeout=seconds_max, source_address=from_source
        )
    return http.client.HTTPSConnection(
        place.hostname,
        place.port,
        timeout=seconds_max,
        source_address=from_source,
        context=ssl.create_default_context(cafile=ca),
    )


def log_in(base: str, ca: Path, client_id: str, client_secret: str) -> HttpReply:
    """What the token endpoint says to these credentials."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": client_secret,
        "scope": "https://management.azure.com/.default",
    }
    return request(
        base,
        "POST",
        "/adfs/oauth2/v2.0/token",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=urlencode(form).encode(),
        ca=ca,
    )


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "forewarn", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class ServiceProcess:
    """`forewarn serve` over one data directory; survives as many deaths as a test wants."""

    def __init__(
        self,
        data: Path,
        fleet: str | None,
        *options: str,
        inside: Sequence[str] = (),
        seen: Path | None = None,
        log: Path | None = None,
    ) -> None:
        """Over this data directory; `inside` a command that runs another one in its own way.

        Such a command may name the directory otherwise than we do: `seen` is how we see it.
        """
        self._inside = tuple(inside)
        self._named = data
        self.data = seen or data
        self.data.mkdir(parents=True, exist_ok=True)
        self.fleet = self.data / "fleet.toml"
        if fleet is not None:
            self.fleet.write_text(fleet, encoding="utf-8")
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.log = log or self.data / "serve.log"
        self.metadata: list[str] = []
        self.control = ""
        self._token = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def command(self) -> list[str]:
        command = [*self._inside, sys.executable, "-m", "forewarn", "serve", "--json"]
        command += ["--data", str(self._named)]
        if self.fleet.exists():
            command += ["--fleet", str(self._named / self.fleet.name)]
        if not {"--metadata", "--network"} & set(self._options):
            command += ["--metadata", "127.0.0.1:0"]
        return [*command, *self._options]

    def start(self) -> None:
        """Start the service and wait until it serves."""
        self.spawn()
        self.await_serving()

    def spawn(self) -> None:
        """Start the service; it does not serve yet."""
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self.command, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def await_serving(self) -> None:
        """Wait until it serves, and take note of its addresses."""
        assert self._process is not None, "spawn it first"
        assert self._process.stdout is not None, "it was piped"
        line = self._process.stdout.readline()
        if not line:
            self._wait()
            raise AssertionError(f"the service did not start:\n{self.log.read_text()}")
        addresses = json.loads(line)
        self.metadata = addresses["metadata"]
        self.control = addresses["control"]
        self._token = ""

    def fail_to_start(self) -> tuple[int, str]:
        """Start a service that must not come to serve; its exit status, and its last word."""
        self.spawn()
        assert self._process is not None, "it was spawned"
        assert self._process.stdout is not None, "it was piped"
        line = self._process.stdout.readline()
        assert not line, f"it serves: {line}"
        return self._wait(), self.log.read_text(encoding="utf-8").splitlines()[-1]

    @property
    def pid(self) -> int:
        assert self._process is not None, "start it first"
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "start it first"
        self._process.send_signal(number)

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self.signal(signal.SIGTERM)
        return self._wait()

    def kill(self) -> None:
        """`kill -9`, at whatever it is doing; it may be dead already."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._wait()

    def restart(self) -> None:
        """Die without warning, and come back."""
        self.kill()
        self.start()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _wait(self) -> int:
        assert self._process is not None, "start it first"
        code = self._process.wait(STOP_SECONDS_MAX)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    # -- as a guest ----------------------------------------------------------------------

    def get(self, source: str, query: str = f"api-version={VERSION}") -> HttpReply:
        """Read the document as the machine at this address."""
        return request(
            self.metadata[0], "GET", f"{PATH}?{query}", source=source, headers={"Metadata": "true"}
        )

    def document(self, source: str) -> Any:  # noqa: ANN401 - Azure's document
        """The document as the machine at this address reads it now."""
        reply = self.get(source)
        assert reply.status == 200, reply
        return reply.json

    def approve(self, source: str, *event_ids: str) -> HttpReply:
        """Approve events as the machine at this address."""
        body = json.dumps({"StartRequests": [{"EventId": event_id} for event_id in event_ids]})
        return request(
            self.metadata[0],
            "POST",
            f"{PATH}?api-version={VERSION}",
            source=source,
            headers={"Metadata": "true"},
            body=body.encode(),
        )

    # -- as an operator ------------------------------------------------------------------

    @property
    def ca(self) -> Path:
        """The certificate to trust."""
        return self.data / "ca.pem"

    @property
    def operator(self) -> Mapping[str, str]:
        """What the first operator logs in with: client_id, client_secret, tenant_id and others."""
        content: Mapping[str, str] = json.loads((self.data / "operator.json").read_bytes())
        return content

    @property
    def token(self) -> str:
        """A token of the first operator; one for each life of the service."""
        if not self._token:
            first = self.operator
            reply = log_in(self.control, self.ca, first["client_id"], first["client_secret"])
            assert reply.status == 200, reply
            self._token = reply.json["access_token"]
        return self._token

    @property
    def authorized(self) -> Mapping[str, str]:
        """The header that an operator sends."""
        return {"Authorization": f"Bearer {self.token}"}

    def ask(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpReply:
        """One request to the control plane, by nobody in particular."""
        return request(self.control, method, target, headers=headers, body=body, ca=self.ca)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, against this service."""
        return run(*arguments, "--data", str(self.data))

    def json(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever the command said
        """The command line's --json output; it must succeed."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def announce(self, *arguments: str) -> Sequence[Any]:
        """Announce, and return the events."""
        events: Sequence[Any] = self.json("announce", *arguments)["events"]
        return events

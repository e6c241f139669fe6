"""Deliveries over real sockets: whatever a receiver does, they end in time, and go nowhere else."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.clocks import SystemClock
from forewarn.core.targets import AllowedHost, Target
from forewarn.errors import Refused, Unavailable
from forewarn.hooks.sender import ANSWER_BYTES_MAX, HttpPost
from forewarn.ports.hooks import Post
from forewarn.testing.post_contract import HEADERS, PostContract
from forewarn.testing.receivers import Receiver, SimulatedPost
from forewarn.wire.targets import load_allowed, load_target

QUICK = timedelta(seconds=0.5)


def post_to(target: Target, *, deadline: timedelta = QUICK) -> HttpPost:
    return HttpPost(
        SystemClock(), (AllowedHost(host=target.host, port=target.port),), deadline=deadline
    )


class TestHttpPost(PostContract):
    def answering(self, status: int) -> AbstractContextManager[tuple[Post, Target]]:
        return self._answering(status)

    @contextmanager
    def _answering(self, status: int) -> Iterator[tuple[Post, Target]]:
        receiver = Receiver(lambda _: status)
        target = load_target(receiver.url)
        if status:
            receiver.start()
        try:
            yield post_to(target, deadline=timedelta(seconds=10)), target
        finally:
            receiver.stop()


class TestSimulatedPost(PostContract):
    def answering(self, status: int) -> AbstractContextManager[tuple[Post, Target]]:
        return self._answering(status)

    @contextmanager
    def _answering(self, status: int) -> Iterator[tuple[Post, Target]]:
        yield SimulatedPost(lambda _t, _r: status), load_target("https://hooks.example.org/")


@contextmanager
def speaking(*words: bytes, hold: bool = False) -> Iterator[Target]:
    """A server that says these bytes to whoever connects, then closes, or waits for the end."""
    ended = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            for word in words:
                try:
                    connection.sendall(word)
                except OSError:
                    return
                ended.wait(0.05)
            if hold:
                ended.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield load_target(f"http://127.0.0.1:{listener.getsockname()[1]}/x")
        finally:
            ended.set()
            thread.join()


def test_a_receiver_gets_the_body_and_the_headers() -> None:
    with Receiver() as receiver:
        target = load_target(receiver.url + "?a=b")
        post_to(target).deliver(target, HEADERS, b'{"x":1}')

    (received,) = receiver.received
    assert received.path == "/hook?a=b"
    assert received.body == b'{"x":1}'
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert received.headers["webhook-id"] == "c.0"
    assert received.headers["user-agent"].startswith("forewarn/")


def test_a_redirection_is_not_followed() -> None:
    """keeps N10"""
    with Receiver(lambda _: 307) as receiver:
        target = load_target(receiver.url)
        assert post_to(target).deliver(target, HEADERS, b"{}") == 307

    assert len(receiver.received) == 1


def test_a_receiver_that_resets_is_unavailable() -> None:
    with Receiver(lambda _: 0) as receiver:
        target = load_target(receiver.url)
        with pytest.raises(Unavailable):
            post_to(target).deliver(target, HEADERS, b"{}")


def test_a_receiver_that_says_nothing_is_not_waited_for_long() -> None:
    """keeps N10"""
    with speaking(hold=True) as target, pytest.raises(Unavailable, match=r"within 0\.5 s"):
        post_to(target).deliver(target, HEADERS, b"{}")


def test_a_receiver_that_drips_is_not_waited_for_long() -> None:
    """keeps N10: each byte is in time, and all of them are not."""
    drops = [bytes([letter]) for letter in b"HTTP/1.1 200 OK"]
    with speaking(*drops, hold=True) as target, pytest.raises(Unavailable, match="within"):
        post_to(target).deliver(target, HEADERS, b"{}")


def test_a_receiver_that_keeps_the_connection_is_not_waited_for() -> None:
    with speaking(b"HTTP/1.1 204 No Content\r\n\r\n", hold=True) as target:
        assert post_to(target).deliver(target, HEADERS, b"{}") == 204


def test_an_interim_answer_is_not_the_answer() -> None:
    with speaking(b"HTTP/1.1 100 Continue\r\n", b"\r\n", b"HTTP/1.1 500 Oops\r\n\r\n") as target:
        assert post_to(target).deliver(target, HEADERS, b"{}") == 500


@pytest.mark.parametrize(
    "words",
    [[b"SSH-2.0-OpenSSH\r\n"], [b""], [b"x" * (ANSWER_BYTES_MAX + 2)] * 2, [b"HTTP/1.1 999 ?\r\n"]],
)
def test_what_is_no_http_is_no_answer(words: list[bytes]) -> None:
    with speaking(*words) as target, pytest.raises(Unavailable):
        post_to(target).deliver(target, HEADERS, b"{}")


def test_an_answer_of_any_length_is_no_burden() -> None:
    many = [b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 65536] * 40]
    with speaking(*many) as target:
        assert post_to(target).deliver(target, HEADERS, b"{}") == 200


def test_a_name_that_nobody_has_is_unavailable() -> None:
    target = load_target("http://nobody.invalid/")

    with pytest.raises(Unavailable, match="no host is called"):
        post_to(target).deliver(target, HEADERS, b"{}")


def test_a_name_is_judged_by_where_it_leads() -> None:
    """keeps N10: this machine's own name leads to loopback, or to an address it may be told at."""
    with Receiver() as receiver:
        target = load_target(f"http://localhost.:{receiver.port}/")
        assert post_to(target).deliver(target, HEADERS, b"{}") == 200
    for name in ("ip6-localhost", "localhost.localdomain"):
        target = load_target(f"http://{name}:{receiver.port}/")
        with pytest.raises((Refused, Unavailable)):
            post_to(target).deliver(target, HEADERS, b"{}")


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1"])
def test_a_name_that_leads_to_metadata_is_not_connected_to(address: str) -> None:
    """keeps N10: whoever runs the DNS of an allowed host cannot have us ask for secrets."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    target = load_target("http://hooks.example.org/")
    post = HttpPost(
        SystemClock(),
        load_allowed(["hooks.example.org"]),
        resolve=lambda _: [(family, (address, 80))],
    )

    with pytest.raises(Refused, match="never told"):
        post.deliver(target, HEADERS, b"{}")


def test_a_name_that_leads_to_loopback_is_not_connected_to_and_is_asked_for_once() -> None:
    """keeps N10: the address that was judged is the one that is connected to."""
    asked: list[str] = []
    with Receiver() as receiver:

        def resolve(target: Target) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
            asked.append(target.host)
            return [(socket.AF_INET, ("127.0.0.1", target.port))]

        name = f"hooks.example.org:{receiver.port}"
        post = HttpPost(SystemClock(), load_allowed([name]), resolve=resolve)
        with pytest.raises(Refused, match="loopback"):
            post.deliver(load_target(f"http://{name}/"), HEADERS, b"{}")

    assert asked == ["hooks.example.org"]
    assert receiver.received == []


def test_a_name_that_leads_nowhere_is_refused() -> None:
    target = load_target("http://hooks.example.org/")
    post = HttpPost(SystemClock(), load_allowed(["hooks.example.org"]), resolve=lambda _: [])

    with pytest.raises(Unavailable, match="leads nowhere"):
        post.deliver(target, HEADERS, b"{}")


def test_the_next_address_of_a_name_is_tried() -> None:
    with Receiver() as receiver:
        places = [
            (socket.AF_INET, ("127.0.0.1", 1)),
            (socket.AF_INET, ("127.0.0.1", receiver.port)),
        ]
        target = load_target(f"http://localhost:{receiver.port}/")
        allowed = load_allowed([f"localhost:{receiver.port}"])
        post = HttpPost(SystemClock(), allowed, resolve=lambda _: places)

        assert post.deliver(target, HEADERS, b"{}") == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signed itself, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += [
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=hook",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@contextmanager
def tls(folder: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    def serve() -> None:
        raw, _ = listener.accept()
        with raw:
            try:
                with context.wrap_socket(raw, server_side=True) as connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except (ssl.SSLError, OSError):
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_tls_is_spoken_to_whom_we_trust(certificate: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    with tls(certificate) as port:
        allowed = load_allowed([f"127.0.0.1:{port}"])
        post = HttpPost(SystemClock(), allowed, context=context)
        target = load_target(f"https://127.0.0.1:{port}/")
        assert post.deliver(target, HEADERS, b"{}") == 200


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(certificate: Path) -> None:
    """keeps N10"""
    with tls(certificate) as port:
        post = HttpPost(SystemClock(), load_allowed([f"127.0.0.1:{port}"]))
        with pytest.raises(Unavailable, match="not trusted"):
            post.deliver(load_target(f"https://127.0.0.1:{port}/"), HEADERS, b"{}")

"""Who stays logged in where: the files, and the commands against a running service."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from forewarn.cli import logins
from forewarn.cli.connection import Connection
from forewarn.cli.transport import Credentials, Service, Session
from forewarn.config.surroundings import Surroundings
from forewarn.errors import Malformed, Refused
from forewarn.testing.processes import ServiceProcess

FLEET: Final = """
[[scope]]
name = "web"
resource_group = "rg1"
machine = [{ name = "web-0" }]
"""
THERE: Final = "https://10.0.0.5:8443"
ANN: Final = Credentials("ann", "s3cret")
SOON: Final = datetime.now(UTC) + timedelta(hours=1)


def elsewhere(ca: Path | None = None, url: str = THERE, who: Credentials = ANN) -> Service:
    return Service(url=url, credentials=who, ca=ca, remedy="go there")


# -- what is kept ----------------------------------------------------------------------------


def test_a_login_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(b"PEM")

    file = logins.keep(tmp_path, elsewhere(ca))
    ca.unlink()

    kept = logins.load(tmp_path)
    assert kept is not None
    assert (kept.url, kept.credentials) == (THERE, ANN)
    assert kept.ca is not None
    assert kept.ca.read_bytes() == b"PEM"
    assert {one.stat().st_mode & 0o777 for one in file.parent.iterdir()} == {0o600}
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_new_login_takes_the_place_of_the_old(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(b"PEM")
    logins.keep(tmp_path, elsewhere(ca))

    logins.keep(tmp_path, elsewhere(url="https://other"))

    kept = logins.load(tmp_path)
    assert kept is not None
    assert (kept.url, kept.ca) == ("https://other", None)


def test_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    logins.keep(tmp_path, elsewhere())

    assert logins.forget(tmp_path)
    assert not logins.forget(tmp_path)
    assert logins.load(tmp_path) is None
    assert logins.load(None) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"endpoint": "x"}', "null"])
def test_a_broken_login_says_what_to_do(tmp_path: Path, content: str) -> None:
    logins.keep(tmp_path, elsewhere()).write_text(content)

    with pytest.raises(Malformed, match="forewarn logout"):
        logins.load(tmp_path)


def test_without_a_home_nothing_is_kept(tmp_path: Path) -> None:
    for act in (lambda: logins.keep(None, elsewhere()), lambda: logins.forget(None)):
        with pytest.raises(Refused, match="set HOME or XDG_CONFIG_HOME"):
            act()
    (tmp_path / "forewarn").touch()
    with pytest.raises(Refused, match="cannot be kept in"):
        logins.keep(tmp_path, elsewhere())
    assert logins.load(tmp_path) is None


# -- tokens ----------------------------------------------------------------------------------


def test_a_token_is_kept_for_its_service_and_principal_until_it_is_over(tmp_path: Path) -> None:
    logins.keep(tmp_path, elsewhere())
    got = Session("t0ken", SOON)

    logins.session(tmp_path, elsewhere()).keep(got)

    again = logins.session(tmp_path, elsewhere())
    assert (again.token, again.expires_at) == ("t0ken", SOON)
    assert logins.session(tmp_path, elsewhere(url="https://other")).token == ""
    assert logins.session(tmp_path, elsewhere(who=Credentials("bob", "x"))).token == ""
    assert logins.session(None, elsewhere()).token == ""
    again.keep(Session("late", datetime.now(UTC) + timedelta(seconds=10)))
    assert logins.session(tmp_path, elsewhere()).token == ""


def test_another_login_does_not_inherit_the_token(tmp_path: Path) -> None:
    logins.keep(tmp_path, elsewhere())
    logins.session(tmp_path, elsewhere()).keep(Session("t0ken", SOON))

    logins.keep(tmp_path, elsewhere())

    assert logins.session(tmp_path, elsewhere()).token == ""


def test_a_token_of_unknown_life_or_in_a_broken_file_is_not_used(tmp_path: Path) -> None:
    file = logins.keep(tmp_path, elsewhere()).with_name("login-token.json")

    logins.session(tmp_path, elsewhere()).keep(Session("t0ken"))
    assert not file.exists()
    for content in ("", "[]", "{}", '{"expires_at": "x"}'):
        file.write_text(content)
        assert logins.session(tmp_path, elsewhere()).token == ""


# -- which service is meant ------------------------------------------------------------------


def test_a_login_is_meant_where_nothing_else_is_said(tmp_path: Path) -> None:
    logins.keep(tmp_path, elsewhere())
    own = Surroundings(config_home=tmp_path)
    told = Surroundings(
        config_home=tmp_path, endpoint="https://env", client_id="env", client_secret="x"
    )
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"client_id": "file", "client_secret": "x"}))

    def meant(connection: Connection, surroundings: Surroundings = own) -> tuple[str, str]:
        service = connection.service(surroundings)
        return service.url, service.credentials.client_id

    assert meant(Connection()) == (THERE, "ann")
    assert meant(Connection(endpoint=THERE)) == (THERE, "ann")
    assert meant(Connection(endpoint=THERE), told) == (THERE, "env")
    assert meant(Connection(credentials=file)) == (THERE, "file")
    assert meant(Connection(), told) == ("https://env", "env")
    with pytest.raises(Malformed, match="needs to know who you are"):
        Connection(endpoint="https://other").service(own)


def test_a_data_directory_that_is_named_wins_over_a_login(tmp_path: Path) -> None:
    logins.keep(tmp_path, elsewhere())
    (tmp_path / "endpoint.json").write_text(json.dumps({"control": "https://127.0.0.1:1"}))
    (tmp_path / "operator.json").write_text(json.dumps({"client_id": "x", "client_secret": "y"}))

    named = Connection(data=tmp_path).service(Surroundings(config_home=tmp_path))
    told = Surroundings(config_home=tmp_path, data_directory=tmp_path)

    assert named.url == Connection().service(told).url == "https://127.0.0.1:1"


# -- the commands ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("logins"), FLEET) as process:
        yield process


class Shell:
    """A user's shell, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        told = {name: value for name, value in os.environ.items() if "FOREWARN" not in name}
        path = os.pathsep.join(sys.path)
        self.environment = {**told, "PYTHONPATH": path, "XDG_CONFIG_HOME": str(home)}

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(words),
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=self.home,
            env=self.environment,
        )

    def command(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "forewarn", *words]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.end_to_end
def test_after_a_login_commands_need_no_options(service: ServiceProcess, shell: Shell) -> None:
    added = service.json("principal", "add", "shop-team", "--role", "owner", "--group", "rg1")
    where = ("--endpoint", service.control, "--ca", str(service.ca))

    who = ("--client-id", added["client_id"])
    done = shell.run("login", *where, *who, typed=added["client_secret"] + "\n")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"logged in to {service.control} as shop-team (owner)\n")
    assert added["client_secret"] not in done.stdout
    told = json.loads(shell.run("whoami", "--json").stdout)
    assert (told["name"], told["role"], told["groups"]) == ("shop-team", "owner", ["rg1"])
    assert (told["id"], told["endpoint"]) == (added["client_id"], service.control)
    shown = shell.run("whoami").stdout
    assert "Resource groups  rg1\n" in shown
    assert "(in 59m" in shown
    assert shell.run("fleet").stdout.startswith("rg1/web")

    # A token that the service does not know any more is replaced, whatever its date says.
    file = shell.home / "forewarn" / "login-token.json"
    stale = {**json.loads(file.read_bytes()), "token": "stale"}
    file.write_text(json.dumps(stale))
    assert shell.run("fleet").returncode == 0
    assert json.loads(file.read_bytes())["token"] != "stale"

    service.run("principal", "revoke", "shop-team")
    refused = shell.run("fleet")
    assert refused.returncode == 3
    assert "forewarn login" in refused.stderr

    assert shell.run("logout").stdout == "logged out\n"
    assert json.loads(shell.run("logout", "--json").stdout) == {"was_logged_in": False}
    assert shell.run("fleet").returncode == 6


@pytest.mark.end_to_end
def test_a_wrong_secret_is_not_kept(service: ServiceProcess, shell: Shell) -> None:
    where = ("--endpoint", service.control, "--ca", str(service.ca))

    done = shell.run("login", *where, "--client-id", service.operator["client_id"], typed="no\n")

    assert done.returncode == 3
    assert "does not know" in done.stderr
    assert not (shell.home / "forewarn").exists()


@pytest.mark.end_to_end
def test_a_secret_may_be_in_a_file_or_in_the_data_directory(
    service: ServiceProcess, shell: Shell
) -> None:
    file = shell.home / "secret"
    file.write_text(service.operator["client_secret"] + "\n")
    who = ("--client-id", service.operator["client_id"], "--secret-file", str(file))

    by_file = shell.run("login", "--data", str(service.data), *who, "--json")
    shell.run("logout")
    by_data = shell.run("login", "--data", str(service.data))

    assert json.loads(by_file.stdout)["role"] == "operator"
    assert by_data.returncode == 0
    assert "Resource groups  all\n" in shell.run("whoami").stdout


@pytest.mark.end_to_end
def test_on_a_terminal_the_secret_is_asked_for_and_not_shown(
    service: ServiceProcess, shell: Shell
) -> None:
    words = ("login", "--data", str(service.data), "--client-id", service.operator["client_id"])
    terminal, theirs = pty.openpty()
    # In a session of its own, it does not take the terminal of these tests for its own.
    with subprocess.Popen(
        shell.command(words),
        env=shell.environment,
        start_new_session=True,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as child:
        os.close(theirs)
        shown = b""
        while b"Client secret: " not in shown:
            shown += os.read(terminal, 1024)
        os.write(terminal, service.operator["client_secret"].encode() + b"\n")
        try:
            while more := os.read(terminal, 1024):
                shown += more
        except OSError:
            # The other end is closed.
            os.close(terminal)

    assert child.returncode == 0
    assert b"logged in" in shown
    assert service.operator["client_secret"].encode() not in shown


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--secret-file", "x"], "give --client-id too"),
        (["--client-id", "x", "--credentials", "y"], "either --client-id or --credentials"),
        (["--client-id", "x", "--secret-file", "missing"], "no secret can be read from missing"),
        (["--client-id", "x"], "the secret is empty"),
    ],
)
def test_a_login_that_says_too_little_or_too_much_is_malformed(
    shell: Shell, words: list[str], reason: str
) -> None:
    done = shell.run("login", "--endpoint", "https://127.0.0.1:9", *words)

    assert done.returncode == 2
    assert reason in done.stderr

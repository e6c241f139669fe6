"""The environment variables that forewarn obeys."""

from __future__ import annotations

import os
from pathlib import Path

from forewarn.config.surroundings import Surroundings, inherited


def test_the_environment_says_where_the_service_is() -> None:
    surroundings = Surroundings.from_environ(
        {
            "FOREWARN_DATA": "/var/lib/forewarn",
            "FOREWARN_ENDPOINT": "https://127.0.0.1:8443",
            "FOREWARN_CA": "/etc/forewarn/ca.pem",
            "FOREWARN_CLIENT_ID": "me",
            "FOREWARN_CLIENT_SECRET": "s3cret",
        }
    )

    assert surroundings.data_directory == Path("/var/lib/forewarn")
    assert surroundings.endpoint == "https://127.0.0.1:8443"
    assert surroundings.ca == Path("/etc/forewarn/ca.pem")
    assert (surroundings.client_id, surroundings.client_secret) == ("me", "s3cret")
    assert "s3cret" not in repr(surroundings)


def test_an_empty_variable_says_nothing() -> None:
    names = ("DATA", "ENDPOINT", "CA", "CLIENT_ID", "CLIENT_SECRET")
    empty = {f"FOREWARN_{name}": "" for name in names}

    assert Surroundings.from_environ(empty) == Surroundings.from_environ({}) == Surroundings()


def test_a_process_knows_its_own() -> None:
    assert Surroundings.of_this_process() == Surroundings.from_environ(os.environ)


def test_a_user_has_a_place_for_configuration() -> None:
    def home(**environ: str) -> Path | None:
        return Surroundings.from_environ(environ).config_home

    assert home(HOME="/home/ann") == Path("/home/ann/.config")
    assert home(HOME="/home/ann", XDG_CONFIG_HOME="/etc/ann") == Path("/etc/ann")
    assert home(HOME="/home/ann", XDG_CONFIG_HOME="here") == Path("/home/ann/.config")
    assert home() is None


def test_what_is_started_inherits_the_environment() -> None:
    assert inherited({"PATH": "/nowhere"}) == {**os.environ, "PATH": "/nowhere"}

"""The environment variables that forewarn obeys."""

from __future__ import annotations

import os
from pathlib import Path

from forewarn.config.surroundings import Surroundings


def test_the_environment_says_where_the_service_is() -> None:
    surroundings = Surroundings.from_environ(
        {
            "FOREWARN_DATA": "/var/lib/forewarn",
            "FOREWARN_ENDPOINT": "http://127.0.0.1:8080",
            "FOREWARN_TOKEN": "secret",
        }
    )

    assert surroundings.data_directory == Path("/var/lib/forewarn")
    assert surroundings.endpoint == "http://127.0.0.1:8080"
    assert surroundings.token == "secret"


def test_an_empty_variable_says_nothing() -> None:
    empty = {"FOREWARN_DATA": "", "FOREWARN_ENDPOINT": "", "FOREWARN_TOKEN": ""}

    assert Surroundings.from_environ(empty) == Surroundings.from_environ({}) == Surroundings()


def test_a_process_knows_its_own() -> None:
    assert Surroundings.of_this_process() == Surroundings.from_environ(os.environ)

"""The owner's handbook: which hooks are found, in which order, and which files are none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from forewarn.agent.handbook import FileHandbook
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.rules import USUAL, Approve, Rule
from forewarn.agent.settings import Command, Settings
from forewarn.client import Event

REBOOT = Event(id="A", type="Reboot", status="Scheduled", resources=("web-0",), source="User")
FREEZE = Event(id="B", type="Freeze", status="Scheduled", resources=("web-0",), source="Platform")


def put(file: Path, *, mode: int = 0o755) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


def names(handbook: FileHandbook, event: Event, phase: Phase) -> list[str]:
    return [hook.name for hook in handbook.hooks(event, phase)]


def test_hooks_of_a_phase_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    files = [put(tmp_path / "prepare" / name) for name in ("20-b", "10-a", "9-c")]
    put(tmp_path / "undo" / "10-a")
    handbook = FileHandbook(Settings(hooks=tmp_path), "web-0")

    hooks = handbook.hooks(REBOOT, Phase.PREPARE)

    assert hooks == tuple(Hook(file.name, (str(file),)) for file in sorted(files))
    assert names(handbook, REBOOT, Phase.STARTED) == []
    assert names(handbook, REBOOT, Phase.UNDO) == ["10-a"]


@pytest.mark.parametrize(
    "name",
    [".hidden", "10-a~", "10-a.bak", "10-a.swp", "10-a.orig", "10-a.rej", "10-a.dpkg-old", "10-a.ucf-dist"],
)  # fmt: skip
def test_what_editors_and_packages_leave_behind_is_no_hook(tmp_path: Path, name: str) -> None:
    put(tmp_path / "prepare" / name)
    put(tmp_path / "prepare" / "10-a")
    (tmp_path / "prepare" / "20-directory").mkdir()

    handbook = FileHandbook(Settings(hooks=tmp_path), "web-0")

    assert names(handbook, REBOOT, Phase.PREPARE) == ["10-a"]


def test_a_file_that_is_not_executable_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = put(tmp_path / "prepare" / "10-a", mode=0o644)
    handbook = FileHandbook(Settings(hooks=tmp_path), "web-0")

    with caplog.at_level(logging.WARNING):
        assert names(handbook, REBOOT, Phase.PREPARE) == []
        assert names(handbook, REBOOT, Phase.PREPARE) == []

    assert caplog.messages == [f"{file} is not run: it is not executable: chmod +x {file}"]


def test_what_looks_like_a_hook_and_is_none_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "prepare" / "10-a")
    put(tmp_path / "prepare" / "20-later", mode=0o644)
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / "10-link").symlink_to("/nowhere")
    (tmp_path / "undo" / "20-directory").mkdir()
    (tmp_path / "Prepare").mkdir()
    put(tmp_path / "onReboot.sh")
    put(tmp_path / "onreboot.sh", mode=0o644)
    put(tmp_path / "10-lost")
    put(tmp_path / "README", mode=0o644)

    FileHandbook(Settings(hooks=tmp_path), "web-0").warn()

    assert [message.split(":")[0] for message in caplog.messages] == [
        f"{tmp_path / name} is not run"
        for name in (
            *("10-lost", "Prepare", "onreboot.sh", "undo/10-link", "undo/20-directory"),
            "prepare/20-later",
        )
    ]
    assert "hooks belong into" in caplog.messages[0]
    assert caplog.messages[3].endswith("it points to nothing")


def test_a_directory_that_somebody_named_and_that_is_not_there_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commands = (Command(Phase.PREPARE, Hook("50-all", ("true",))),)
    missing = tmp_path / "hooks.d"

    FileHandbook(Settings(hooks=missing, commands=commands), "web-0").warn()

    [told] = caplog.messages
    assert told.startswith(f"there is no directory {missing}, and so no hook of it is run: make it")


def test_a_file_named_for_a_type_is_a_hook_of_prepare_for_it(tmp_path: Path) -> None:
    put(tmp_path / "onReboot.sh")
    put(tmp_path / "prepare" / "10-a")
    handbook = FileHandbook(Settings(hooks=tmp_path), "web-0")

    assert names(handbook, REBOOT, Phase.PREPARE) == ["10-a", "onReboot.sh"]
    assert names(handbook, REBOOT, Phase.UNDO) == []
    assert names(handbook, FREEZE, Phase.PREPARE) == ["10-a"]


def test_a_type_that_is_a_path_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "on" / ".." / "evil.sh")
    hooks = tmp_path / "hooks.d"
    put(hooks / "on" / "x")
    event = Event(id="A", type="/../../evil", status="Scheduled", resources=("web-0",))

    assert names(FileHandbook(Settings(hooks=hooks), "web-0"), event, Phase.PREPARE) == []


def test_commands_of_the_file_stand_among_the_files(tmp_path: Path) -> None:
    put(tmp_path / "prepare" / "10-a")
    put(tmp_path / "prepare" / "90-z")
    commands = (
        Command(Phase.PREPARE, Hook("50-all", ("true",))),
        Command(Phase.PREPARE, Hook("51-reboots", ("true",)), types=("Reboot",)),
        Command(Phase.PREPARE, Hook("52-platform", ("true",)), sources=("Platform",)),
        Command(Phase.UNDO, Hook("50-undo", ("true",))),
    )
    handbook = FileHandbook(Settings(hooks=tmp_path, commands=commands), "web-0")

    assert names(handbook, REBOOT, Phase.PREPARE) == ["10-a", "50-all", "51-reboots", "90-z"]
    assert names(handbook, FREEZE, Phase.PREPARE) == ["10-a", "50-all", "52-platform", "90-z"]
    assert names(handbook, FREEZE, Phase.UNDO) == ["50-undo"]


def test_what_was_put_there_meanwhile_counts(tmp_path: Path) -> None:
    handbook = FileHandbook(Settings(hooks=tmp_path / "hooks.d"), "web-0")
    assert names(handbook, REBOOT, Phase.PREPARE) == []

    put(tmp_path / "hooks.d" / "prepare" / "10-a")

    assert names(handbook, REBOOT, Phase.PREPARE) == ["10-a"]


def test_a_directory_that_cannot_be_read_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.joinpath("prepare").symlink_to(tmp_path / "prepare")

    hooks = FileHandbook(Settings(hooks=tmp_path), "web-0").hooks(REBOOT, Phase.PREPARE)

    assert hooks == ()
    assert f"the hooks in {tmp_path / 'prepare'} cannot be read" in caplog.text


def test_the_first_rule_that_is_for_an_event_counts(tmp_path: Path) -> None:
    first = Rule(types=("Freeze",), approve=Approve.NEVER)
    second = Rule(names=("web-*",), approve=Approve.ALWAYS)
    settings = Settings(hooks=tmp_path, rules=(first, second))

    assert FileHandbook(settings, "web-0").rule(FREEZE) == first
    assert FileHandbook(settings, "web-0").rule(REBOOT) == second
    assert FileHandbook(settings, "db-0").rule(REBOOT) == USUAL

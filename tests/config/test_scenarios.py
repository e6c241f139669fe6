"""Scenario files: what they say, and all that can be wrong with one, each with step and remedy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.config.fleets import parse_fleet
from forewarn.config.scenario_steps import (
    Announce,
    Approve,
    Cancel,
    ExpectAnswer,
    ExpectApproval,
    ExpectEvent,
    Inject,
    Seen,
)
from forewarn.config.scenarios import find_scenario, parse_scenario, shipped
from forewarn.core.events import Cause, EventSource, EventType
from forewarn.core.scopes import Enabling
from forewarn.errors import Malformed, Unknown

# Line 1 to 6; what a test adds begins on line 7, as step 2.
BEGUN = """\
availability_set = "web:2"
[[step]]
announce = "Freeze"
vm = "web-0"
started_for = "5m"
as = "first"
"""
HOSTED = """\
subscription_id = "00000000-0000-0000-0000-000000000009"
[periods]
recovery = "10m"
[[scope]]
name = "web"
kind = "availability-set"
  [[scope.machine]]
  name = "web-0"
  host = "host-a"
  tags = { role = "wéb" }
  [[scope.machine]]
  name = "web-1"
[[step]]
announce = "Reboot"
host = "host-a"
"""


def refusal(text: str) -> list[str]:
    with pytest.raises(Malformed) as refused:
        parse_scenario(text, "mine.toml", "mine")
    return str(refused.value).split("\n")


def steps(text: str) -> tuple[object, ...]:
    return parse_scenario(BEGUN + text, "mine.toml", "mine").steps[1:]


def test_an_announcement_says_whom_what_and_for_how_long() -> None:
    (step,) = steps(
        '[[step]]\nat = "+2m"\nannounce = "Reboot"\nsource = "User"\nvm = ["web-0", "WEB-1"]\n'
        'notice = "20m"\nduration = "9s"\nstarted_for = "10m"\ndescription = "new disk"\n'
        'as = ["a", "b"]\n'
    )

    assert step == Announce(
        number=2,
        at=timedelta(minutes=2),
        type=EventType.REBOOT,
        source=EventSource.USER,
        machines=("web-0", "web-1"),
        notice=timedelta(minutes=20),
        duration=timedelta(seconds=9),
        started_for=timedelta(minutes=10),
        description="new disk",
        names=("a", "b"),
    )


@pytest.mark.parametrize(
    ("kind", "cause"),
    [("actual", Cause.HARDWARE_FAILURE), ("predicted", Cause.PREDICTED_FAILURE)],
)
def test_hardware_fails_or_is_going_to(kind: str, cause: Cause) -> None:
    (step,) = steps(f'[[step]]\nhardware_failure = "{kind}"\ntype = "Redeploy"\nvm = "web-1"\n')

    assert isinstance(step, Announce)
    assert (step.type, step.cause, step.source) == (
        EventType.REDEPLOY, cause, EventSource.PLATFORM,
    )  # fmt: skip


def test_steps_follow_the_one_before_unless_they_say_when() -> None:
    found = steps(
        '[[step]]\nat = "+1m"\napprove = "first"\nvm = "web-1"\n[[step]]\ncancel = "first"\n'
        '[[step]]\nfault = "slow"\nvm = "web-0"\ntimes = 3\nlasts = "1m"\ndelay = "9s"\n'
    )

    minute = timedelta(minutes=1)
    assert found == (
        Approve(number=2, at=minute, event="first", machine="web-1"),
        Cancel(number=3, at=minute, event="first"),
        Inject(
            number=4,
            at=minute,
            kind="slow",
            machine="web-0",
            times=3,
            lasts=minute,
            delay=timedelta(seconds=9),
        ),
    )


def test_expectations_say_what_a_vm_is_to_read() -> None:
    found = steps(
        '[[step]]\nexpect = "Scheduled"\nevent = "first"\nvm = "web-1"\nwithin = "30s"\n'
        'type = "Freeze"\nsource = "Platform"\nresources = ["web-0"]\nnot_before = "15m"\n'
        'duration = "unknown"\ndescription = ""\nincarnation = 2\n'
        '[[step]]\nexpect = "approval"\nevent = "first"\nwithin = "5m"\n'
        '[[step]]\nexpect = "answer"\nvm = "web-0"\nanswer = "429"\n'
    )

    zero = timedelta()
    assert found == (
        ExpectEvent(
            number=2,
            at=zero,
            event="first",
            seen=Seen.SCHEDULED,
            machines=("web-1",),
            within=timedelta(seconds=30),
            type=EventType.FREEZE,
            source=EventSource.PLATFORM,
            resources=("web-0",),
            not_before=timedelta(minutes=15),
            duration=-1,
            description="",
            incarnation=2,
        ),
        ExpectApproval(number=3, at=zero, event="first", within=timedelta(minutes=5)),
        ExpectAnswer(number=4, at=zero, machines=("web-0",), answer="429"),
    )


BAD_STEPS = [
    ("at = 5\ncancel = 'first'", "8: step 2: at = 5 is not a time: write it like"),
    ("at = 'soon'\ncancel = 'first'", '8: step 2: at = "soon" is not a time: write "+" and'),
    ("cancel = 'second'", '8: step 2: no event before it is called "second": name one of first'),
    ("cancel = 'first'\nvm = 'web-0'", "9: step 2: [[step]] with cancel has no member 'vm'"),
    ("at = '+1m'", "7: step 2: it says nothing to do: give one of announce, hardware_failure"),
    ("cancel = 'first'\nexpect = 'gone'", "9: step 2: it has cancel and expect: give one of"),
    ("announce = 'Frieze'\nvm = 'web-0'", '8: step 2: announce has no value "Frieze": did you'),
    ("announce = 'PowerOff'\nvm = 'web-0'", "8: step 2: guests are never told of a PowerOff"),
    ("announce = 'Reboot'", '7: step 2: it names no VM: add vm = "web-0"'),
    ("announce = 'Reboot'\nvm = 'web-9'", '9: step 2: there is no VM "web-9" in it: name one of'),
    ("announce = 'Reboot'\nvm = 7", "9: step 2: vm has 7, which is not text"),
    ("announce = 'Reboot'\nhost = 'h'", '9: step 2: no VM of it is on a host "h": name VMs with'),
    ("announce = 'Preempt'\nsource = 'User'\nvm = 'web-0'", "9: step 2: a Preempt is the platform"),
    (
        "announce = 'Freeze'\nvm = 'web-0'\nstarted_for = '9m'",
        '10: step 2: a Freeze of web-0 has started_for = "5m" in step 1: give both the same',
    ),
    (
        "announce = 'Freeze'\nvm = 'web-0'",
        '7: step 2: a Freeze of web-0 has started_for = "5m" in step 1: give both the same',
    ),
    (
        "announce = 'Reboot'\nvm = 'web-0'\nas = 'first'",
        '10: step 2: an event is called "first" already: call this one otherwise',
    ),
    (
        "hardware_failure = 'actual'\nvm = 'web-0'\nnotice = '1h'",
        "10: step 2: an actual hardware failure gives no notice: leave notice out",
    ),
    ("hardware_failure = 'past'\nvm = 'web-0'", "8: step 2: hardware_failure has no value"),
    ("approve = 'first'", '7: step 2: it does not say who approves: add vm = "…"'),
    ("approve = 'first'\nvm = ['web-0', 'web-1']", "9: step 2: it names several VMs: name one"),
    ("fault = '418'", '8: step 2: fault has no value "418": did you mean'),
    ("expect = 'Completed'\nevent = 'first'", '8: step 2: nobody can expect "Completed": give one'),
    ("expect = 5", "8: step 2: nobody can expect 5: give one"),
    ("expect = 'gone'", '7: step 2: it does not say which event: add event = "…"'),
    ("expect = 'gone'\nevent = 'first'\ntype = 'Freeze'", "10: step 2: [[step]] with expect = "),
    (
        "expect = 'approval'\nevent = 'first'",
        '7: step 2: it does not say how soon: add within = "5m"',
    ),
    ("expect = 'answer'\nanswer = '200'", '7: step 2: it does not say who is answered: add vm = "'),
    (
        "expect = 'answer'\nvm = 'web-0'\nanswer = 'teapot'",
        '10: step 2: no answer is called "teapot": give a status such as "429", or one of "empty"',
    ),
]


@pytest.mark.parametrize(("step", "expected"), BAD_STEPS)
def test_what_is_wrong_with_a_step_is_said_with_its_line_and_number(
    step: str, expected: str
) -> None:
    (line,) = refusal(f"{BEGUN}[[step]]\n{step}\n")

    assert line.startswith(f"mine.toml:{expected}")


BAD_FILES = [
    ("title = 'x'\n", "1: nothing happens in it: add steps: [[step]] on a line of its own"),
    ("tilte = 'x'\n[[step]]\nfault = '429'\n", "1: a scenario has no member 'tilte': did you mean"),
    ("vm = 'a b'\n[[step]]\nfault = '429'\n", '1: name = "a b" is not a name: use letters'),
    (
        "availability_set = 'web'\n[[step]]\nfault = '429'\n",
        "1: availability set web: say NAME:COUNT, such as web:3",
    ),
    ("vm = 'x'\n" + HOSTED, "1: vm beside [[scope]]: say which VMs there are in one of the two"),
    (HOSTED + "vm = 'web-0'\n", "15: step 1: host beside vm: give one of them"),
    (HOSTED.replace('host-a"\n\n', "").replace('host = "host-a"\n  tags', "tags"),
     "14: step 1: no VM of it is on a host"),
    (HOSTED.replace("recovery", "recover"), "3: [periods] has no member 'recover': did you mean"),
    ("step = 3\n", "1: step is not an array of tables: begin each of them with [[step]]"),
    ("[[step\n", "1: not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BAD_FILES)
def test_what_is_wrong_with_a_file_is_said_with_its_line(text: str, expected: str) -> None:
    (line,) = refusal(text)

    assert line.startswith(f"mine.toml:{expected}")


def test_steps_are_in_their_order() -> None:
    (line,) = refusal(
        BEGUN + '[[step]]\nat = "+8m"\ncancel = "first"\n[[step]]\nat = "+2m"\ncancel = "first"\n'
    )

    assert line.startswith('mine.toml:11: step 3: at = "+2m" is before the step before it, at +8m')


def test_all_faults_are_said_at_once() -> None:
    found = refusal(BEGUN + '[[step]]\ncancel = "x"\n[[step]]\nexpect = "gone"\nevent = "y"\n')

    assert [line.split(":")[2] for line in found] == [" step 2", " step 3"]


def test_the_fleet_of_a_scenario_is_a_fleet_file_too() -> None:
    scenario = parse_scenario(HOSTED, "mine.toml", "mine")

    again = parse_fleet(scenario.fleet_toml, "fleet.toml", Enabling.ALWAYS)

    assert again == scenario.fleet
    assert again.periods.recovery == timedelta(minutes=10)


def test_a_few_words_are_a_fleet_with_its_periods() -> None:
    scenario = parse_scenario("[periods]\nrecovery = '10m'\n[[step]]\nfault = '429'\n", "m", "m")

    fleet = parse_fleet(scenario.fleet_toml, "fleet.toml", Enabling.ALWAYS)

    assert fleet.machine_names == ("vm-0",)
    assert fleet.periods.recovery == timedelta(minutes=10)


@pytest.mark.parametrize("name", shipped())
def test_whatever_comes_with_forewarn_can_be_read(name: str) -> None:
    scenario = find_scenario(name)

    assert scenario.title != name
    assert any(isinstance(step, ExpectEvent) for step in scenario.steps)


def test_a_file_is_found_by_its_path_and_a_name_among_ours(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(BEGUN)

    assert find_scenario(str(file)).name == "mine"
    with pytest.raises(Unknown, match="`forewarn scenario list`"):
        find_scenario("live-migratoin")
    with pytest.raises(Malformed, match="cannot be read"):
        find_scenario(str(tmp_path / "nothing.toml"))

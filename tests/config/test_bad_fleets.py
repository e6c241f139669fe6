"""Fleet files that are refused: each fault with its line and its remedy, all of them at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.fleets import parse_fleet
from forewarn.errors import Malformed

# Line 1 to 6; what a test adds begins on line 7.
SET = """\
[[scope]]
name = "web"
kind = "availability-set"
[[scope.machine]]
name = "web-0"
address = "10.0.0.1"
"""


def refusal(text: str) -> list[str]:
    with pytest.raises(Malformed) as refused:
        parse_fleet(text, "fleet.toml")
    return str(refused.value).split("\n")


def scope_with(*lines: str) -> str:
    """A scope without machines whose own lines begin on line 4."""
    return "\n".join(['[[scope]]\nname = "web"\nkind = "scale-set"', *lines])


def machine_with(*lines: str) -> str:
    """A machine whose own lines begin on line 7."""
    return SET + "\n".join(lines)


BAD_TOML = [
    ("[[scope]]\nname web\n", "2: not TOML: Expected '=' after a key in a key/value pair: mend it"),
    ('name = "a"\nname = "b"\n', "2: not TOML: Cannot overwrite a value: mend it at line 2"),
    ("[[scope]]\nname = [", "2: not TOML: Invalid value: mend it at end of document"),
    ("name = " + "1" * 5000, "1: not TOML: Exceeds the limit"),
]


@pytest.mark.parametrize(("text", "expected"), BAD_TOML)
def test_what_is_not_toml_is_refused_at_its_line(text: str, expected: str) -> None:
    [line] = refusal(text)

    assert line.startswith(f"fleet.toml:{expected}")


def test_brackets_without_end_are_refused() -> None:
    [line] = refusal("a = " + "[" * 100_000)

    assert line.startswith("fleet.toml:1: not TOML: ")


NAME_REMEDY = "use letters, digits, _ - and . only, and begin with a letter, a digit or _"
DURATION_REMEDY = 'write it like "90s", "5m", "1h30m", "2d" or "PT5M"'
ADDRESS_REMEDY = 'write it like "10.77.0.11" or "fd00::11", without a port or a prefix length'

BAD_MEMBERS = [
    # Members that do not exist, or not there.
    (scope_with('knid = "x"'), "4: [[scope]] has no member 'knid': did you mean 'kind'?"),
    (scope_with("Spot = true"), "4: [[scope]] has no member 'Spot': did you mean 'spot'?"),
    (
        scope_with('address = "10.0.0.1"'),
        "4: [[scope]] has no member 'address': it belongs under [[scope.machine]]",
    ),
    (
        machine_with('recovery = "5m"'),
        "7: [[scope.machine]] has no member 'recovery': it belongs under [periods] or [[scope]]",
    ),
    (
        machine_with("wheels = 1"),
        (
            "7: [[scope.machine]] has no member 'wheels': remove it, or use "
            "address, host, name, size, tags, update_domain, vm_id, zone"
        ),
    ),
    ("[[scopes]]", "1: the top level has no member 'scopes': did you mean 'scope'?"),
    (
        '[[machine]]\nname = "a"',
        "1: the top level has no member 'machine': it belongs under [[scope]]",
    ),
    (
        '[periods]\nmargins = "1s"',
        "2: [periods] has no member 'margins': did you mean 'margin'?",
    ),
    # Tables that are something else.
    (
        '[scope]\nname = "web"',
        "1: scope is not an array of tables: begin each of them with [[scope]] on a line of its own",
    ),
    (
        scope_with("machine = 1"),
        (
            "4: machine is not an array of tables: "
            "begin each of them with [[scope.machine]] on a line of its own"
        ),
    ),
    ("periods = 1", "1: periods is not a table: write [periods] on a line of its own"),
    # Names.
    ('[[scope]]\nkind = "scale-set"', '1: [[scope]] without a name: add name = "…"'),
    (
        scope_with("[[scope.machine]]", 'host = "a"'),
        '4: [[scope.machine]] without a name: add name = "…"',
    ),
    ('[[scope]]\nname = ""\nkind = "scale-set"', f'2: name = "" is not a name: {NAME_REMEDY}'),
    (
        '[[scope]]\nname = "a/b"\nkind = "scale-set"',
        f'2: name = "a/b" is not a name: {NAME_REMEDY}',
    ),
    (
        f'[[scope]]\nname = "{"x" * 81}"\nkind = "scale-set"',
        f'2: name = "{"x" * 56}... is too long: use at most 80 characters',
    ),
    ('[[scope]]\nname = 7\nkind = "scale-set"', '2: name = 7 is not text: write name = "…"'),
    (
        scope_with('resource_group = ".."'),
        f'4: resource_group = ".." is not a name: {NAME_REMEDY}',
    ),
    (machine_with('host = "ho st"'), f'7: host = "ho st" is not a name: {NAME_REMEDY}'),
    (machine_with("host = false"), '7: host = false is not text: write host = "…"'),
    # Choices.
    (
        '[[scope]]\nname = "web"\nkind = "avset"',
        (
            '3: kind has no value "avset": '
            'give "standalone", "cloud-service", "availability-set" or "scale-set"'
        ),
    ),
    (
        '[[scope]]\nname = "web"\nkind = "scaleset"',
        '3: kind has no value "scaleset": did you mean "scale-set"?',
    ),
    (
        scope_with("enabled = true"),
        '4: enabled has no value true: give "always" or "on-request"',
    ),
    (
        scope_with('auto_approve = ["user-restart"]'),
        '4: auto_approve has no value "user-restart": did you mean "user-reboot"?',
    ),
    (
        scope_with('auto_approve = "user-reboot"'),
        '4: auto_approve = "user-reboot" is not a list: write auto_approve = ["user-reboot"]',
    ),
    # Numbers and flags.
    (scope_with("update_domains = 0"), "4: update_domains = 0 is out of bounds: give 1 to 20"),
    (scope_with("update_domains = 21"), "4: update_domains = 21 is out of bounds: give 1 to 20"),
    (
        scope_with('update_domains = "3"'),
        '4: update_domains = "3" is not a whole number: write update_domains = 1',
    ),
    (
        scope_with("update_domains = true"),
        "4: update_domains = true is not a whole number: write update_domains = 1",
    ),
    (
        scope_with("user_operations_max = 0"),
        "4: user_operations_max = 0 is out of bounds: give 1 to 1000000",
    ),
    (
        machine_with("update_domain = 5"),
        (
            "7: update_domain = 5 is not below the scope's update_domains, 5: "
            "give 0 to 4, or raise update_domains"
        ),
    ),
    (machine_with("update_domain = -1"), "7: update_domain = -1 is out of bounds: give 0 to 19"),
    (
        scope_with('spot = "yes"'),
        '4: spot = "yes" is neither true nor false: write it without quotes',
    ),
    # Durations.
    (
        scope_with("recovery = 30"),
        f"4: recovery = 30 is not a duration: {DURATION_REMEDY}, with quotes",
    ),
    (
        scope_with('recovery = "half an hour"'),
        f"4: recovery = 'half an hour' is not a duration: {DURATION_REMEDY}",
    ),
    (
        scope_with('recovery = "9999d"'),
        "4: recovery = '9999d' is too long: give at most 3650d",
    ),
    (
        scope_with('terminate_notice = "4m59s"'),
        '4: terminate_notice = "4m59s" is out of bounds: give "5m" to "15m"',
    ),
    (
        scope_with('terminate_notice = "16m"'),
        '4: terminate_notice = "16m" is out of bounds: give "5m" to "15m"',
    ),
    (
        scope_with('terminate_notice = "5m"', "spot = true"),
        "4: spot VMs get no terminate_notice: remove terminate_notice, or spot = true",
    ),
    (
        '[[scope]]\nname = "web"\nkind = "cloud-service"\nterminate_notice = "5m"',
        (
            "4: a scope of kind cloud-service has no terminate_notice: "
            'remove it, or make it kind = "scale-set"'
        ),
    ),
    (
        '[periods]\nremember = "23h"',
        '2: remember = "23h" is too short: give "24h" or more',
    ),
    (
        '[periods]\n\nfreeze_limit = "0s"',
        '3: freeze_limit = "0s" is too short: give "1s" or more',
    ),
    # Kinds.
    (
        '[[scope]]\nname = "one"',
        (
            "1: a standalone scope has one VM, this one has 0: give it one [[scope.machine]], "
            "or another kind: cloud-service, availability-set, scale-set"
        ),
    ),
    (
        SET.replace("availability-set", "standalone") + '[[scope.machine]]\nname = "web-1"',
        (
            "3: a standalone scope has one VM, this one has 2: give it one [[scope.machine]], "
            "or another kind: cloud-service, availability-set, scale-set"
        ),
    ),
    # Addresses.
    (
        scope_with("[[scope.machine]]", 'name = "a"', 'address = "10.0.0.1/24"'),
        f'6: address "10.0.0.1/24" is no IP address: {ADDRESS_REMEDY}',
    ),
    (
        scope_with("[[scope.machine]]", 'name = "a"', "address = [", '"10.0.0.1",', '"a.b",', "]"),
        f'8: address "a.b" is no IP address: {ADDRESS_REMEDY}',
    ),
    (
        scope_with("[[scope.machine]]", 'name = "a"', "address = 10"),
        '6: address has 10, which is not text: write address = "…" or address = ["…", "…"]',
    ),
    (
        scope_with("[[scope.machine]]", 'name = "a"', 'address = "0.0.0.0"'),
        '6: nobody speaks from address "0.0.0.0": give the address of the VM itself',
    ),
    (
        machine_with("[[scope.machine]]", 'name = "web-1"', "", 'address = "::FFFF:10.0.0.1"'),
        (
            "10: address 10.0.0.1 of default/web/web-1 is already that of default/web/web-0 (line 6): "
            "give every VM its own"
        ),
    ),
    # Things that are there twice.
    (
        machine_with("[[scope.machine]]", 'name = "WEB-0"'),
        (
            "8: VM WEB-0 is in this scope already (line 5): "
            "give it another name; capitals make no difference"
        ),
    ),
    (
        machine_with("[[scope]]", 'kind = "scale-set"', 'name = "Web"'),
        (
            "9: scope default/web is in this file already (line 2): "
            "give it another name or resource_group; capitals make no difference"
        ),
    ),
    # The rest.
    (machine_with("zone = 1"), '7: zone = 1 is not text: write zone = "…"'),
    (
        machine_with("vm_id = 1979-05-27"),
        '7: vm_id = "1979-05-27" is not text: write vm_id = "…"',
    ),
    (machine_with('tags = "a"'), '7: tags = "a" is not a table: write tags = { role = "web" }'),
    (
        machine_with("[scope.machine.tags]", 'team = "blue"', "cost = 7"),
        '9: cost = 7 is not text: write cost = "…"',
    ),
    (
        'subscription_id = "mine"',
        (
            '1: subscription_id = "mine" is not a UUID: '
            'write it like "00000000-0000-0000-0000-000000000000"'
        ),
    ),
    ("subscription_id = 1", '1: subscription_id = 1 is not text: write subscription_id = "…"'),
]


@pytest.mark.parametrize(("text", "expected"), BAD_MEMBERS)
def test_a_fault_comes_alone_with_its_line_and_its_remedy(text: str, expected: str) -> None:
    assert refusal(text) == [f"fleet.toml:{expected}"]


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
subscription_id = "mine"
[[scope]]
name = "web"
kind = "availability set"
update_domains = 99
  [[scope.machine]]
  name = "web 0"
  update_domain = 7
  address = ["10.0.0.1", "10.0.0.1", "nowhere"]
  [[scope.machine]]
[periods]
remember = "1h"
"""

    assert refusal(text) == [
        (
            'fleet.toml:1: subscription_id = "mine" is not a UUID: '
            'write it like "00000000-0000-0000-0000-000000000000"'
        ),
        'fleet.toml:4: kind has no value "availability set": did you mean "availability-set"?',
        "fleet.toml:5: update_domains = 99 is out of bounds: give 1 to 20",
        f'fleet.toml:7: name = "web 0" is not a name: {NAME_REMEDY}',
        (
            "fleet.toml:9: address 10.0.0.1 of default/web/web 0 is already that of "
            "default/web/web 0 (line 9): give every VM its own"
        ),
        f'fleet.toml:9: address "nowhere" is no IP address: {ADDRESS_REMEDY}',
        'fleet.toml:10: [[scope.machine]] without a name: add name = "…"',
        'fleet.toml:12: remember = "1h" is too short: give "24h" or more',
    ]


LINES = [
    "[[scope]]",
    "[[scope.machine]]",
    "[periods]",
    "[scope]",
    'name = "a"',
    "name = ['''",
    "name = 1",
    'kind = "scale-set"',
    "kind = []",
    'address = ["10.0.0.1", {}]',
    "address = {}",
    "tags = { a = 1 }",
    "tags = []",
    "machine = [{ name = 1 }, { }]",
    'machine.name = "x"',
    "spot = true",
    'terminate_notice = "1m"',
    "auto_approve = [1, [], {}]",
    'margin = "-1s"',
    'recovery = "PT0S"',
    "update_domain = 7",
    "x = nan",
]


@given(st.lists(st.sampled_from(LINES), max_size=12).map("\n".join))
def test_any_file_is_understood_or_refused_with_lines_of_its_own(text: str) -> None:
    try:
        parse_fleet(text, "fleet.toml")
    except Malformed as error:
        for line in str(error).split("\n"):
            name, number, what = line.split(":", 2)
            assert name == "fleet.toml"
            assert 1 <= int(number) <= text.count("\n") + 1
            assert ": " in what, "a remedy follows"

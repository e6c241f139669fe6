"""Where webhooks may be told things: the allow-list, and every trick to get around it."""

from __future__ import annotations

import pytest

from forewarn.core.targets import Target, check_connection, check_target
from forewarn.errors import Malformed, Refused
from forewarn.wire.targets import load_allowed, load_target

ALLOWED = load_allowed(
    [
        "hooks.example.org",
        "127.0.0.1:9000",
        "*.corp.example",
        "[::1]:9000",
        "alerts.example.org:8443",
    ]
)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.org", Target(scheme="https", host="hooks.example.org", port=443, path="/")),
        ("HTTPS://Hooks.Example.ORG./a?b=1", Target(scheme="https", host="hooks.example.org", port=443, path="/a?b=1")),
        ("http://127.0.0.1:9000/x", Target(scheme="http", host="127.0.0.1", port=9000, path="/x")),
        ("http://[0:0::1]:80/", Target(scheme="http", host="::1", port=80, path="/")),
    ],
)  # fmt: skip
def test_an_address_is_read(url: str, target: Target) -> None:
    assert load_target(url) == target
    assert load_target(target.url) == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://hooks.example.org/",
        "hooks.example.org/x",
        "https://user:password@hooks.example.org/",
        "https://hooks.example.org@169.254.169.254/",
        "https://hooks.example.org\\@169.254.169.254/",
        "https://hooks.example.org/#x",
        "https://hooks.example.org:0/",
        "https://hooks.example.org:65536/",
        "https://hooks.example.org:port/",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX: y",
        "https://h\u00f6oks.example.org/",
        "https:///path",
        "https://2852039166/",
        "https://0xa9fea9fe/",
        "https://0xA9.0xFE.0xA9.0xFE/",
        "https://0251.0376.0251.0376/",
        "https://169.254.43518/",
        "https://127.1/",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://[127.0.0.1]/",
        "https://a..b/",
        "https://-a.example/",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 130}example/",
        f"https://hooks.example.org/{'x' * 2000}",
    ],
)
def test_what_could_be_understood_differently_is_refused(url: str) -> None:
    """keeps N10"""
    with pytest.raises(Malformed):
        load_target(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/path",
        "http://hooks.example.org/path",
        "http://127.0.0.1:9000/",
        "http://[::1]:9000/",
        "https://a.corp.example/",
        "https://a.b.corp.example/",
        "https://alerts.example.org:8443/",
    ],
)
def test_what_is_on_the_allow_list_is_told(url: str) -> None:
    check_target(load_target(url), ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/",
        "https://evil-hooks.example.org/",
        "https://hooks.example.org.evil.example/",
        "https://hooks.example.org:8443/",
        "http://127.0.0.1/",
        "http://127.0.0.1:9001/",
        "http://127.0.0.2:9000/",
        "https://corp.example/",
        "https://evilcorp.example/",
        "https://alerts.example.org/",
    ],
)
def test_what_is_not_on_the_allow_list_is_refused_with_the_remedy(url: str) -> None:
    """keeps N10"""
    with pytest.raises(Refused, match="--webhook-allow"):
        check_target(load_target(url), ALLOWED)
    with pytest.raises(Refused, match="--webhook-allow"):
        check_target(load_target(url), ())


METADATA = [
    "169.254.169.254",
    "169.254.0.1",
    "168.63.129.16",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "fe80::1",
    "fd00:ec2::254",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "255.255.255.255",
]


@pytest.mark.parametrize("address", METADATA)
def test_the_metadata_address_is_never_told_however_it_is_spelled(address: str) -> None:
    """keeps N10"""
    place = f"[{address}]" if ":" in address else address
    target = load_target(f"http://{place}/")
    allowed = load_allowed([place])

    with pytest.raises(Refused, match="never told"):
        check_target(target, allowed)


@pytest.mark.parametrize("address", [*METADATA, "fe80::1%eth0"])
def test_a_name_that_leads_to_the_metadata_address_is_not_followed(address: str) -> None:
    """keeps N10"""
    with pytest.raises(Refused, match="never told"):
        check_connection(load_target("https://hooks.example.org/"), address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_a_name_that_leads_to_loopback_is_not_followed(address: str) -> None:
    """keeps N10"""
    with pytest.raises(Refused, match="loopback"):
        check_connection(load_target("https://hooks.example.org/"), address)

    check_connection(load_target("http://localhost/"), address)
    check_connection(load_target("http://127.0.0.1/"), address)


def test_other_addresses_are_connected_to() -> None:
    for address in ("10.0.0.1", "192.0.2.1", "2001:db8::1", "::ffff:10.0.0.1"):
        check_connection(load_target("https://hooks.example.org/"), address)


@pytest.mark.parametrize(
    "line", ["", "*", "*.", "*.1.2.3.4", "http://x", "a b", "x:0", "*.[::1]", "[127.0.0.1]"]
)
def test_an_allow_list_that_cannot_be_understood_is_refused(line: str) -> None:
    with pytest.raises(Malformed):
        load_allowed([line])

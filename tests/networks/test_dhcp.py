"""DHCP's bytes: what a guest asks, and what it is told of the endpoint. Without any socket."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.networks import dhcp
from forewarn.networks.dhcp import Answer, Link, Message, Option

GOLDEN: Final = Path(__file__).parent / "golden"
CARD: Final = bytes.fromhex("525400770021")
LINK: Final = Link(
    endpoint="168.63.129.16", addresses={"52:54:00:77:00:21": "10.77.1.21"}, prefix=24
)
OURS: Final = (Option.SERVER, bytes((168, 63, 129, 16)))
ADDRESS: Final = (Option.ADDRESS, bytes((10, 77, 1, 21)))
WANTS_245: Final = (Option.WANTED, bytes((1, 3, 245)))


def ask(
    message: int,
    *options: tuple[int, bytes],
    card: bytes = CARD,
    has: bytes = bytes(4),
    relay: bytes = bytes(4),
    flags: int = 0,
) -> bytes:
    """A client's datagram, put together field by field as RFC 2131 has them."""
    head = struct.pack("!BBBBIHH", 1, 1, 6, 0, 0x01020304, 0, flags)
    head += has + bytes(4) + bytes(4) + relay + card.ljust(16, b"\0") + bytes(64) + bytes(128)
    said = ((Option.MESSAGE, bytes((message,))), *options)
    tail = b"".join(bytes((code, len(value))) + value for code, value in said)
    return head + b"\x63\x82\x53\x63" + tail + b"\xff"


def sample() -> bytes:
    """What the old sample sends: 244 bytes, and nothing but that it looks for somebody."""
    datagram = ask(Message.DISCOVER, flags=0x8000)
    assert len(datagram) == 244
    return datagram


def options(datagram: bytes) -> dict[int, bytes]:
    """The options of an answer, read as the sample reads them."""
    found, at = {}, 0xF0
    while datagram[at] != 255:
        code, length = datagram[at], datagram[at + 1]
        found[code] = datagram[at + 2 : at + 2 + length]
        at += 2 + length
    return found


def told(datagram: bytes) -> Answer:
    answer = dhcp.answer(LINK, datagram)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("name", "datagram", "to"),
    [
        ("offer-to-the-sample", sample(), "255.255.255.255"),
        (
            "offer-with-routes",
            ask(Message.DISCOVER, (Option.WANTED, bytes((1, 121, 249, 245)))),
            "255.255.255.255",
        ),
        ("ack", ask(Message.REQUEST, OURS, ADDRESS, WANTS_245), "255.255.255.255"),
        (
            "ack-of-a-renewal",
            ask(Message.REQUEST, WANTS_245, has=bytes((10, 77, 1, 21))),
            "10.77.1.21",
        ),
        ("ack-to-inform", ask(Message.INFORM, WANTS_245, has=bytes((10, 77, 1, 21))), "10.77.1.21"),
        (
            "nak",
            ask(Message.REQUEST, OURS, (Option.ADDRESS, bytes((10, 77, 1, 99)))),
            "255.255.255.255",
        ),
    ],
)
def test_an_answer_is_known_to_the_byte(name: str, datagram: bytes, to: str) -> None:
    """Keeps S2: option 245 has the endpoint's address, four bytes, big end first."""
    golden = bytes.fromhex((GOLDEN / f"{name}.hex").read_text())

    assert told(datagram) == Answer(golden, to)


def test_the_sample_finds_the_endpoint() -> None:
    """Keeps S2: read as the sample does, at the offsets that it looks at."""
    asked = sample()

    answered = told(asked).datagram

    assert len(answered) >= 0xF6
    assert answered[0xEC:0xF0] == asked[0xEC:0xF0]
    assert answered[4:8] == asked[4:8]
    assert answered[0x1C:0x22] == CARD
    assert options(answered)[245] == bytes((168, 63, 129, 16))


def test_an_informed_guest_keeps_what_it_has() -> None:
    answered = told(ask(Message.INFORM, has=bytes((10, 77, 1, 21)))).datagram

    assert answered[16:20] == bytes(4)
    assert Option.LEASE_SECONDS not in options(answered)


@pytest.mark.parametrize(
    "datagram",
    [
        ask(Message.DISCOVER, (Option.WANTED, bytes((1, 3, 6)))),
        ask(Message.DISCOVER, card=bytes.fromhex("525400770099")),
        ask(Message.DISCOVER, relay=bytes((10, 0, 0, 1))),
        ask(Message.REQUEST, (Option.SERVER, bytes((10, 0, 0, 1))), ADDRESS),
        ask(Message.REQUEST, (Option.ADDRESS, bytes((10, 77, 1, 99)))),
        ask(Message.INFORM, has=bytes((10, 77, 1, 99))),
        ask(Message.OFFER),
        ask(7),
    ],
    ids=[
        "who wants other options", "an unknown card", "from another link", "another server's client",
        "an address of another server", "who speaks from elsewhere", "an answer", "a release",
    ],
)  # fmt: skip
def test_others_are_left_to_others(datagram: bytes) -> None:
    assert dhcp.answer(LINK, datagram) is None


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        sample()[:239],
        sample()[:236] + b"\0\0\0\0" + sample()[240:],
        b"\x02" + sample()[1:],
        sample()[:241],
        sample()[:242],
        sample()[:240] + b"\xff",
        sample()[:240] + b"\x35\x02\x01\x01\xff",
    ],
)
def test_what_is_not_dhcp_is_not_answered(datagram: bytes) -> None:
    assert dhcp.parse(datagram) is None
    assert dhcp.answer(LINK, datagram) is None


def test_padding_and_options_in_pieces_are_understood() -> None:
    head, tail = sample()[:240], b"\0\0\x35\x01\x01\x37\x01\x01\x37\x01\xf5\xff"

    asked = dhcp.parse(head + tail)

    assert asked is not None
    assert asked.wanted == bytes((1, 245))


@given(st.binary(max_size=120), st.integers(0, 243))
def test_no_datagram_breaks_anything(noise: bytes, at: int) -> None:
    asked = sample()
    datagram = asked[:at] + noise + asked[at + len(noise) :]

    answer = dhcp.answer(LINK, datagram)

    assert answer is None or 245 in options(answer.datagram) or answer.datagram[242] == Message.NAK

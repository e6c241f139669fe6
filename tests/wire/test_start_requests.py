"""Requests to start events, as some thirty clients send them, and as nobody should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import Malformed
from forewarn.wire.scheduled_events import (
    EVENT_ID_LENGTH_MAX,
    START_REQUESTS_MAX,
    load_start_requests,
)

ONE = "A123BC45-1234-5678-AB90-ABCDEF123456"
TWO = "51941b56-8080-45ac-81ae-8bda818f5958"


@pytest.mark.parametrize(
    "body",
    [
        b'{"StartRequests":[{"EventId":"%s"}]}',
        b'{"StartRequests": [{"EventId": "%s"}]}\r\n',
        b'{\n  "StartRequests": [\n    {\n      "EventId": "%s"\n    }\n  ]\n}',
        b'{"StartRequests":[{"EventId":"%s"}],"DocumentIncarnation":5}',
        b'{"DocumentIncarnation":"5","StartRequests":[{"EventId":"%s"}]}',
        b'{"StartRequests":[{"EventId":"%s","Comment":null}],"x":[{}]}',
        b'\xef\xbb\xbf{"StartRequests":[{"EventId":"%s"}]}',
        b'{"startRequests":[{"eventId":"%s"}]}',
    ],
)
def test_what_clients_send_is_understood(body: bytes) -> None:
    """Keeps S16: also the form of 2017, with the incarnation as a number or as text."""
    assert load_start_requests(body.replace(b"%s", ONE.encode())) == (ONE,)


def test_ids_are_kept_as_they_were_sent() -> None:
    """Keeps S16: several at once; case and braces are the ledger's affair."""
    ids = (ONE, TWO, f"{{{TWO}}}", TWO)

    body = json.dumps({"StartRequests": [{"EventId": event_id} for event_id in ids]}).encode()

    assert load_start_requests(body) == ids


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"EventId=1", "not JSON"),
        (b'{"StartRequests":[{"EventId":"1"}]', "not JSON"),
        (b'{"StartRequests":[{"EventId":"1"}]} trailing', "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"a":' * 200_000, "not JSON"),
        (b'{"DocumentIncarnation":%s}' % (b"9" * 100_000), "not JSON"),
        (b'{"StartRequests":[{"EventId":"\xff"}]}', "not UTF-8"),
        ('{"StartRequests":[{"EventId":"1"}]}'.encode("utf-16"), "not UTF-8"),
        (b"[]", "expected an object with the member StartRequests"),
        (b"null", "expected an object with the member StartRequests"),
        (b'"StartRequests"', "expected an object with the member StartRequests"),
        (b"{}", "expected one member StartRequests, found 0"),
        (b'{"StartRequests":[],"startrequests":[]}', "expected one member StartRequests, found 2"),
        (b'{"StartRequests":null}', "not a list"),
        (b'{"StartRequests":{"EventId":"1"}}', "not a list"),
        (b'{"StartRequests":[]}', "nothing to start"),
        (b'{"StartRequests":["1"]}', "expected an object with the member EventId"),
        (b'{"StartRequests":[{}]}', "expected one member EventId, found 0"),
        (b'{"StartRequests":[{"EventId":1}]}', "not a string, or is empty"),
        (b'{"StartRequests":[{"EventId":null}]}', "not a string, or is empty"),
        (b'{"StartRequests":[{"EventId":""}]}', "not a string, or is empty"),
        (b'{"StartRequests":[{"EventId":" "}]}', "not a string, or is empty"),
        (rb'{"StartRequests":[{"EventId":"\ud800"}]}', "not the id of any event"),
        (
            b'{"StartRequests":[{"EventId":"%s"}]}' % (b"A" * (EVENT_ID_LENGTH_MAX + 1)),
            "not the id of any event",
        ),
        (
            b'{"StartRequests":[%s]}' % b",".join([b"0"] * (START_REQUESTS_MAX + 1)),
            "more than 1000 elements",
        ),
    ],
)
def test_what_makes_no_sense_is_malformed_and_says_why(body: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        load_start_requests(body)


def test_one_bad_id_spoils_the_request() -> None:
    body = json.dumps({"StartRequests": [{"EventId": ONE}, {"EventId": 7}]}).encode()

    with pytest.raises(Malformed):
        load_start_requests(body)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["StartRequests", "EventId"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_whatever_is_sent_the_only_error_is_malformed(body: bytes) -> None:
    try:
        ids = load_start_requests(body)
    except Malformed as error:
        assert str(error)  # noqa: PT017 - either way is right; a third is not
    else:
        assert all(ids)

"""What a request asks for, and what it is answered: every rule, without a socket."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.clocks import SimulatedClock
from forewarn.core.events import EventType
from forewarn.errors import Conflict, ForewarnError, Malformed, Refused, Unavailable
from forewarn.stores.memory import MemoryStore
from forewarn.testing.faults import FaultyStore
from forewarn.testing.worlds import NOON, WEB, World
from forewarn.web import metadata
from forewarn.web.messages import Ending, Reply, Request
from forewarn.web.metadata import (
    Manners,
    ReadDocument,
    ReadInstance,
    ReadVersions,
    StartEvents,
    decide,
)
from forewarn.wire import refusals
from forewarn.wire.refusals import Refusal
from forewarn.wire.versions import INSTANCE_VERSIONS, Version

EVENTS = "/metadata/scheduledevents?api-version="
NEWEST = EVENTS + "2020-07-01"
TRUE = ("metadata", "true")
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def asked(
    target: str, *headers: tuple[str, str], method: str = "GET", http_version: str = "1.1"
) -> metadata.Action:
    return decide(Request(method, target, headers, http_version)).action


def answered(world: World, request: Request, body: bytes = b"", by: str = "10.0.0.10") -> Reply:
    return metadata.answer(
        decide(request), world.caller(by), world.desk, subscription_id=SUBSCRIPTION, body=body
    )


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_each_version_has_reading_and_approving(version: Version, method: str) -> None:
    """Keeps S3."""
    action = asked(EVENTS + version.value, TRUE, method=method)

    assert action == (ReadDocument(version) if method == "GET" else StartEvents())


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("", refusals.BAD_VERSION),
        ("?", refusals.BAD_VERSION),
        ("?version=2020-07-01", refusals.BAD_VERSION),
        ("?api-version=", refusals.BAD_VERSION),
        ("?api-version=latest", refusals.BAD_VERSION),
        ("?api-version=%7Blatest%7D", refusals.BAD_VERSION),
        ("?api-version=2020-7-1", refusals.BAD_VERSION),
        ("?api-version=2020-07-01#events", refusals.BAD_VERSION),
        ("?api-version=2024-07-09", refusals.UNKNOWN_VERSION),
        ("?api-version=2021-12-13", refusals.UNKNOWN_VERSION),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_version_is_refused(query: str, refusal: Refusal, method: str) -> None:
    """Keeps S3: the version is mandatory, and `latest` is none."""
    assert asked(f"/metadata/scheduledevents{query}", TRUE, method=method) == refusal


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_the_preview_does_without_the_header(version: Version, method: str) -> None:
    """Keeps S4 and S6."""
    action = asked(EVENTS + version.value, method=method)

    assert (action == refusals.NO_METADATA_HEADER) == (version is not Version.V2017_03_01)


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("metadata", "true", True),
        ("metadata", "True", True),
        ("metadata", "TRUE", True),
        ("metadata", "false", False),
        ("metadata", "", False),
        ("metadata", "1", False),
        ("x-metadata", "true", False),
    ],
)
def test_the_header_says_true_in_any_case(name: str, value: str, good: bool) -> None:  # noqa: FBT001
    """Keeps S6."""
    assert (asked(NEWEST, (name, value)) != refusals.NO_METADATA_HEADER) == good


@pytest.mark.parametrize("version", ["", "latest", "2024-07-09"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_header_comes_before_the_version(version: str, method: str) -> None:
    """Keeps S6."""
    assert asked(EVENTS + version, method=method) == refusals.NO_METADATA_HEADER


def test_a_header_that_says_two_things_says_nothing() -> None:
    assert asked(NEWEST, TRUE, ("metadata", "false")) == refusals.NO_METADATA_HEADER


@pytest.mark.parametrize(
    "target",
    ["/", "/metadata", "/metadata/versions", "/metadata/instance?api-version=2021-02-01", "/x"],
)
def test_the_header_comes_before_the_path(target: str) -> None:
    """Keeps S6."""
    assert asked(target) == refusals.NO_METADATA_HEADER


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("value", ["10.0.0.1", "", "unknown"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_forwarded_request_is_refused(version: Version, value: str, method: str) -> None:
    """Keeps S6: under the preview too."""
    action = asked(EVENTS + version.value, TRUE, ("x-forwarded-for", value), method=method)

    assert action == refusals.FORWARDED


@pytest.mark.parametrize(
    "target", [f"http://169.254.169.254{NEWEST}", "*", "169.254.169.254:80", "metadata/versions"]
)
def test_a_request_by_way_of_a_proxy_is_refused(target: str) -> None:
    """Keeps S6."""
    action = asked(target, TRUE)

    assert isinstance(action, Refusal)
    assert action.status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/metadata/scheduledevents",
        "/metadata/scheduledEvents",
        "/Metadata/ScheduledEvents/",
        "/METADATA/SCHEDULEDEVENTS",
    ],
)
def test_the_path_ignores_case_and_a_final_slash(path: str) -> None:
    action = asked(f"{path}?api-version=2019-08-01", TRUE)

    assert action == ReadDocument(Version.V2019_08_01)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metadata",
        "/scheduledevents",
        "/metadata/latest/scheduledevents",
        "/metadata/scheduledevents/x",
        "/metadata/scheduledevents//",
        "//metadata/scheduledevents",
        "/metadata/instances",
        "/metadata/versions/x",
    ],
)
def test_there_is_nothing_elsewhere(path: str) -> None:
    assert asked(f"{path}?api-version=2020-07-01", TRUE) == refusals.NO_SUCH_PATH


@pytest.mark.parametrize(
    "query",
    [
        "api-version=2020-07-01&api-version=2020-07-01",
        "api-version=2020-07-01&API-Version=2019-08-01",
        "api-version=2020-07-01&x=1&x=2",
        "api-version=2020-07-01&x&x",
    ],
)
def test_a_repeated_parameter_is_refused(query: str) -> None:
    action = asked(f"/metadata/scheduledevents?{query}", TRUE)

    assert isinstance(action, Refusal)
    assert (action.status, b"more than once" in action.body) == (400, True)


def test_parameters_that_we_do_not_know_are_left_alone() -> None:
    assert asked(f"{NEWEST}&x=1&y&z=%20", TRUE) == ReadDocument(Version.V2020_07_01)


def test_a_flood_of_parameters_is_refused() -> None:
    flood = "&".join(f"x{number}" for number in range(100))

    action = asked(f"{NEWEST}&{flood}", TRUE)

    assert isinstance(action, Refusal)
    assert action.status == 400


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        (NEWEST, "GET, POST"),
        ("/metadata/instance?api-version=2021-02-01", "GET"),
        ("/metadata/versions", "GET"),
    ],
)
@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "get"])
def test_other_methods_are_refused(target: str, allowed: str, method: str) -> None:
    action = asked(target, TRUE, method=method)

    assert isinstance(action, Refusal)
    assert (action.status, action.headers) == (405, (("Allow", allowed),))


@pytest.mark.parametrize("wait", ["0", "1", "300", "007"])
def test_a_wait_is_whole_seconds(wait: str) -> None:
    """Keeps N4."""
    action = asked(f"{NEWEST}&wait={wait}", TRUE, ("if-none-match", '"1"'))

    assert action == ReadDocument(Version.V2020_07_01, '"1"', timedelta(seconds=int(wait)))


@pytest.mark.parametrize("wait", ["301", "-1", "1.5", "", "1s", "%2B1", "9999999999999", "%D9%A3"])
def test_any_other_wait_is_refused(wait: str) -> None:
    assert asked(f"{NEWEST}&wait={wait}", TRUE) == refusals.BAD_WAIT


def test_a_wait_means_nothing_to_an_approval() -> None:
    assert asked(f"{NEWEST}&wait=x", TRUE, method="POST") == StartEvents()


def test_several_tags_are_one_list() -> None:
    action = asked(NEWEST, TRUE, ("if-none-match", '"1"'), ("if-none-match", '"2"'))

    assert action == ReadDocument(Version.V2020_07_01, '"1", "2"')


def test_a_lenient_endpoint_takes_approvals_without_the_header() -> None:
    lenient = Manners(lenient_post=True)

    assert decide(Request("POST", NEWEST), lenient).action == StartEvents()
    assert decide(Request("GET", NEWEST), lenient).action == refusals.NO_METADATA_HEADER
    assert decide(Request("POST", "/metadata/x"), lenient).action == refusals.NO_METADATA_HEADER


@pytest.mark.parametrize(
    ("headers", "http_version", "ending"),
    [
        ((), "1.1", Ending.KEEP_ALIVE),
        ((("connection", "keep-alive"),), "1.1", Ending.KEEP_ALIVE),
        ((("connection", "close"),), "1.1", Ending.CLOSE),
        ((("connection", "Foo, CLOSE"),), "1.1", Ending.CLOSE),
        ((("connection", "foo"), ("connection", "close")), "1.1", Ending.CLOSE),
        ((), "1.0", Ending.CLOSE),
        ((("connection", "keep-alive"),), "1.0", Ending.CLOSE),
    ],
)
def test_the_connection_is_kept_unless_the_guest_is_done(
    headers: tuple[tuple[str, str], ...], http_version: str, ending: Ending
) -> None:
    assert decide(Request("GET", NEWEST, headers, http_version)).ending is ending


@pytest.mark.parametrize(
    ("target", "action"),
    [
        ("?api-version=2021-02-01", ReadInstance((), "2021-02-01", None)),
        ("/?api-version=2021-02-01", ReadInstance(("",), "2021-02-01", None)),
        (
            "/compute/name?api-version=2019-06-01&format=text",
            ReadInstance(("compute", "name"), "2019-06-01", "text"),
        ),
        ("?api-version=2020-07-01", refusals.BAD_VERSION),
        ("?api-version=1999-01-01", refusals.BAD_VERSION),
        ("", refusals.BAD_VERSION),
    ],
)
def test_the_instance_has_versions_of_its_own(target: str, action: metadata.Action) -> None:
    assert asked(f"/metadata/instance{target}", TRUE) == action


def test_the_list_of_versions_needs_no_version() -> None:
    assert asked("/metadata/versions", TRUE) == ReadVersions()
    assert asked("/Metadata/Versions/", TRUE) == ReadVersions()


@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
    target=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1),
    headers=st.lists(
        st.tuples(
            st.sampled_from(["metadata", "connection", "if-none-match", "x-forwarded-for"]),
            st.text(st.characters(max_codepoint=0xFF)),
        )
    ),
)
def test_whatever_is_asked_there_is_a_decision(
    method: str, target: str, headers: list[tuple[str, str]]
) -> None:
    decided = decide(Request(method, target, tuple(headers)))

    assert decided == decide(Request(method, target, tuple(headers)))


# -- answers -----------------------------------------------------------------------------------


def test_nothing_scheduled_is_an_empty_list() -> None:
    """Keeps S7."""
    reply = answered(World(WEB), Request("GET", NEWEST, (TRUE,)))

    assert reply.status == 200
    assert reply.body == b'{"DocumentIncarnation":1,"Events":[]}'
    assert reply.headers == (("ETag", '"1"'),)


def test_the_preview_has_its_underscore() -> None:
    """Keeps S4."""
    world = World(WEB)
    world.announce(EventType.FREEZE, "web-1")

    old = json.loads(answered(world, Request("GET", EVENTS + "2017-03-01")).body)
    new = json.loads(answered(world, Request("GET", EVENTS + "2017-08-01", (TRUE,))).body)

    assert old["Events"][0]["Resources"] == ["_web-1"]
    assert new["Events"][0]["Resources"] == ["web-1"]


@pytest.mark.parametrize(
    ("tag", "status"),
    [('"1"', 304), ("1", 304), ('W/"1"', 304), ("*", 304), ('"0", "1"', 304), ("0", 200)],
)
def test_a_known_document_is_not_sent_again(tag: str, status: int) -> None:
    reply = answered(World(WEB), Request("GET", NEWEST, (TRUE, ("if-none-match", tag))))

    assert (reply.status, bool(reply.body)) == (status, status == 200)
    assert reply.headers == (("ETag", '"1"'),)


@pytest.mark.parametrize(
    "body",
    [
        '{{"StartRequests":[{{"EventId":"{}"}}]}}',
        '{{"DocumentIncarnation":"5","StartRequests":[{{"EventId": "{}"}}]}}',
    ],
)
def test_an_approval_is_answered_with_nothing(body: str) -> None:
    """Keeps S16: by a machine that is not concerned, and in the form of 2017."""
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-1")

    reply = answered(
        world,
        Request("POST", NEWEST, (TRUE, ("if-none-match", "*"))),
        body.format(event.id).encode(),
    )

    assert (reply.status, reply.body) == (200, b"")
    assert world.event(event.id).approval is not None


def test_one_unknown_id_spoils_the_request() -> None:
    world = World(WEB)
    event = world.announce(EventType.REBOOT, "web-1")
    body = json.dumps({"StartRequests": [{"EventId": event.id}, {"EventId": "nonsense"}]})

    reply = answered(world, Request("POST", NEWEST, (TRUE,)), body.encode())

    assert reply == metadata.refused(refusals.unknown_event("nonsense"))
    assert world.event(event.id).approval is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"StartRequests":[]}', b"\xff"])
def test_a_body_without_sense_is_refused(body: bytes) -> None:
    assert answered(World(WEB), Request("POST", NEWEST, (TRUE,)), body).status == 400


def test_without_the_store_nothing_is_approved() -> None:
    """Keeps S16: never a false 200."""
    clock = SimulatedClock(NOON)
    store = FaultyStore(MemoryStore(clock))
    world = World(WEB, clock=clock, store=store)
    event = world.announce(EventType.REBOOT, "web-1")
    body = json.dumps({"StartRequests": [{"EventId": event.id}]}).encode()

    store.is_away = True
    reply = answered(world, Request("POST", NEWEST, (TRUE,)), body)

    assert reply == metadata.refused(refusals.STORE_AWAY)


@pytest.mark.parametrize(
    ("error", "status"),
    [(Malformed("x"), 400), (Refused("x"), 400), (Conflict(["k"]), 503), (Unavailable("x"), 503)],
)
def test_each_family_of_errors_has_a_status(error: ForewarnError, status: int) -> None:
    assert metadata.refusal_of(error).status == status


def test_an_error_of_no_family_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no family"):
        metadata.refusal_of(ForewarnError("x"))


def test_a_machine_learns_its_own_name() -> None:
    target = "/metadata/instance/compute/name?api-version=2019-06-01&format=text"

    reply = answered(World(WEB), Request("GET", target, (TRUE,)), by="10.0.0.12")

    assert (reply.status, reply.body) == (200, b"web-2")
    assert reply.media_type.startswith("text/plain")


def test_a_part_of_an_instance_that_does_not_exist_is_not_found() -> None:
    target = "/metadata/instance/compute/color?api-version=2019-06-01&format=text"

    assert answered(World(WEB), Request("GET", target, (TRUE,))).status == 404


def test_a_machine_that_has_just_left_is_no_instance() -> None:
    world = World(WEB)
    decision = decide(Request("GET", "/metadata/instance?api-version=2021-02-01", (TRUE,)))
    caller = world.caller("10.0.0.10")
    world.declare()

    reply = metadata.answer(decision, caller, world.desk, subscription_id=SUBSCRIPTION)

    assert reply.status == 404


def test_the_versions_are_listed() -> None:
    reply = answered(World(WEB), Request("GET", "/metadata/versions", (TRUE,)))

    assert set(json.loads(reply.body)["apiVersions"]) == set(INSTANCE_VERSIONS)


def test_a_refusal_is_a_reply() -> None:
    reply = answered(World(WEB), Request("PUT", NEWEST, (TRUE,)))

    assert (reply.status, reply.headers) == (405, (("Allow", "GET, POST"),))


@pytest.mark.parametrize(
    ("target", "path", "version"),
    [
        ("/Metadata/nothing?a=b&API-version=x", "/Metadata/nothing", "x"),
        (EVENTS + "1&api-version=2", "/metadata/scheduledevents", "1"),
        ("/" + "x" * 500 + "?api-version=" + "y" * 500, "/" + "x" * 199, "y" * 200),
        ("/metadata/scheduledevents?" + "a&" * 100, "/metadata/scheduledevents", None),
    ],
)
def test_what_was_sent_is_known_whatever_became_of_it(
    target: str, path: str, version: str | None
) -> None:
    decision = decide(Request("GET", target, (TRUE,), "1.1"))

    assert isinstance(decision.action, Refusal)
    assert (decision.path, decision.api_version) == (path, version)

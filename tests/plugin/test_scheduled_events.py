"""What a test of a handler can tell a world to do, and what it can ask it, over real sockets."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forewarn.errors import IllegalTransition, Malformed, Refused, Unknown
from forewarn.testing.emulated_events import Event
from forewarn.testing.processes import HttpReply, request
from forewarn.testing.scheduled_events import ScheduledEvents, emulated
from forewarn.web.faults import Fault

TARGET = "/metadata/scheduledevents?api-version=2020-07-01"

FLEET = """
[[scope]]
name = "web"
kind = "availability-set"
resource_group = "rg1"
  [[scope.machine]]
  name = "web-0"
  address = "10.0.0.10"
  host = "host-a"
  update_domain = 0
  [[scope.machine]]
  name = "web-1"
  address = "10.0.0.11"
  host = "host-a"
  update_domain = 0
[[scope]]
name = "other"
kind = "standalone"
resource_group = "rg2"
  [[scope.machine]]
  name = "web-0"
  address = "10.0.0.20"
"""


def ask(url: str, method: str = "GET", body: str | None = None) -> HttpReply:
    sent = None if body is None else body.encode()
    return request(url, method, TARGET, headers={"Metadata": "true"}, body=sent)


def approve(url: str, event_id: str) -> HttpReply:
    return ask(url, "POST", f'{{"StartRequests": [{{"EventId": "{event_id}"}}]}}')


def seen(url: str) -> list[tuple[str, str]]:
    return [(event["EventType"], event["EventStatus"]) for event in ask(url).json["Events"]]


def approvals(event: Event) -> tuple[bool, str | None]:
    return event.approved, event.approved_by


def faults(scheduled_events: ScheduledEvents) -> list[Fault]:
    return list(scheduled_events.faults.in_force)


def test_a_reboot_is_read_approved_started_and_over(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot("web-0")

    assert seen(scheduled_events.url) == [("Reboot", "Scheduled")]
    assert (event.type, event.status, event.source) == ("Reboot", "Scheduled", "Platform")
    assert event.not_before - scheduled_events.now == timedelta(minutes=15)

    scheduled_events.advance(minutes=3)
    assert approvals(event) == (False, None)
    assert approve(scheduled_events.url, event.id).status == 200

    assert approvals(event) == (True, "web-0")
    assert event.started
    assert event.started_at == scheduled_events.now
    assert seen(scheduled_events.url) == [("Reboot", "Started")]

    assert scheduled_events.advance_to_next()
    assert (event.status, event.completed, event.started) == ("Completed", True, True)
    assert event.ended_at == scheduled_events.now
    assert seen(scheduled_events.url) == []
    assert not scheduled_events.advance_to_next()


def test_fifteen_minutes_are_enough_and_less_is_not(scheduled_events: ScheduledEvents) -> None:
    """Keeps N1: a clock that tests move. What nobody approves has its notice to the last second."""
    event = scheduled_events.freeze()

    scheduled_events.advance(minutes=14, seconds=59)
    assert not event.started

    scheduled_events.advance(seconds=1)
    assert event.started
    assert event.approved_by is None


@pytest.mark.scheduled_events(vms=["a"], spots=["cheap"], scale_sets=["batch:1"])
def test_each_type_has_its_own_notice(scheduled_events: ScheduledEvents) -> None:
    now = scheduled_events.now
    announced = [
        scheduled_events.freeze("a"),
        scheduled_events.reboot("a"),
        scheduled_events.redeploy("a"),
        scheduled_events.preempt("cheap"),
        scheduled_events.terminate("batch_0"),
    ]

    assert [(e.type, (e.not_before - now).total_seconds()) for e in announced] == [
        ("Freeze", 900), ("Reboot", 900), ("Redeploy", 600), ("Preempt", 30), ("Terminate", 300),
    ]  # fmt: skip
    assert [event.id for event in scheduled_events.events] == [
        event.id for event in sorted(announced, key=lambda event: event.not_before)
    ]


def test_what_is_said_of_an_event_is_what_the_vm_reads(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.freeze(
        "web-0", source="User", duration=9, description="a try", notice=timedelta(hours=1)
    )

    (read,) = ask(scheduled_events.url).json["Events"]

    assert (read["EventSource"], read["DurationInSeconds"]) == ("User", 9)
    assert (read["Description"], read["Resources"]) == ("a try", ["web-0"])
    assert event.description == "a try"
    assert event.duration == timedelta(seconds=9)
    assert event.machines == ("web-0",)
    assert event.not_before == scheduled_events.now + timedelta(hours=1)


def test_hardware_fails_without_notice(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.hardware_failure("web-0")

    assert event.started
    assert seen(scheduled_events.url) == [("Reboot", "Started")]


def test_what_is_canceled_never_starts(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.redeploy("web-0")

    scheduled_events.cancel(event)

    assert (event.status, event.canceled, event.started) == ("Canceled", True, False)
    assert seen(scheduled_events.url) == []
    with pytest.raises(IllegalTransition):
        scheduled_events.cancel(event)


@pytest.mark.scheduled_events(availability_sets=["web:3"])
def test_each_vm_has_an_address_that_plays_it(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot("web-0")

    assert approve(scheduled_events.url_of("web-2"), event.id).status == 200

    assert scheduled_events.machines == ("web-0", "web-1", "web-2")
    assert scheduled_events.url == scheduled_events.url_of("web-0")
    assert event.approved_by == "web-2"
    assert [(one.machine, one.method) for one in scheduled_events.requests] == [("web-2", "POST")]


@pytest.mark.scheduled_events(availability_sets=["web:3"])
def test_vms_that_cannot_be_hit_together_are_announced_together(
    scheduled_events: ScheduledEvents,
) -> None:
    with pytest.raises(Malformed, match=r"2 events.*announce\(\)"):
        scheduled_events.reboot("web-0", "web-1")
    assert scheduled_events.events == ()

    first, second = scheduled_events.announce("reboot", "web-0", "web-1", source="user")

    assert (first.machines, second.machines) == (("web-0",), ("web-1",))


def test_several_vms_of_one_host_are_one_event(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    with emulated(fleet=file) as scheduled_events:
        event = scheduled_events.freeze("rg1/web-0", "web-1")

        assert event.machines == ("web-0", "web-1")
        assert scheduled_events.machines == ("rg1/web/web-0", "web-1", "rg2/other/web-0")
        assert seen(scheduled_events.url_of("rg2/web-0")) == []
        assert seen(scheduled_events.url_of("rg1/web-0")) == [("Freeze", "Scheduled")]
        with pytest.raises(Refused, match="several"):
            scheduled_events.url_of("web-0")


def test_what_a_policy_approves_no_vm_has_approved(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.replace('"rg2"', '"rg2"\nauto_approve = ["user-reboot"]'))
    with emulated(fleet=file) as scheduled_events:
        event = scheduled_events.reboot("rg2/web-0", source="User")

        assert approvals(event) == (True, None)
        assert event.started


def test_requests_tell_who_asked_what_and_when(scheduled_events: ScheduledEvents) -> None:
    ask(scheduled_events.url)
    scheduled_events.advance(seconds=5)
    request(scheduled_events.url, "GET", TARGET)

    first, second = scheduled_events.requests
    assert (first.machine, first.method, first.route) == ("web-0", "GET", "scheduledevents")
    assert (first.api_version, first.status) == ("2020-07-01", 200)
    assert second.status == 400
    assert second.at - first.at == timedelta(seconds=5)


def test_a_path_that_is_misspelled_is_told_as_it_was_sent(
    scheduled_events: ScheduledEvents,
) -> None:
    wrong = "/metadata/ScheduledEvent?Api-Version=1999-01-01"
    request(scheduled_events.url, "GET", wrong, headers={"Metadata": "true"})

    (asked,) = scheduled_events.requests
    assert (asked.path, asked.api_version) == ("/metadata/ScheduledEvent", "1999-01-01")
    assert (asked.route, asked.status) == ("other", 404)
    with pytest.raises(TimeoutError, match="path='/metadata/ScheduledEvent'"):
        scheduled_events.wait_until(lambda: False, seconds=0)


def test_time_goes_on_only_when_told_and_never_back(scheduled_events: ScheduledEvents) -> None:
    then = scheduled_events.now

    scheduled_events.advance(hours=1, seconds=1)
    scheduled_events.advance(days=1)
    assert scheduled_events.now == then + timedelta(days=1, hours=1, seconds=1)
    with pytest.raises(Malformed, match="time does not go back: it is 20"):
        scheduled_events.advance_to(then)

    assert scheduled_events.now == then + timedelta(days=1, hours=1, seconds=1)
    with pytest.raises(Malformed, match="not negative"):
        scheduled_events.advance(minutes=-1)
    with pytest.raises(Malformed, match="tzinfo=UTC"):
        scheduled_events.advance_to(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point


def test_an_event_of_last_week_is_still_known(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot()

    scheduled_events.advance(days=7)

    assert (event.status, event.completed) == ("Completed", True)
    assert scheduled_events.events == ()


@pytest.mark.parametrize("_run", [1, 2])
@pytest.mark.scheduled_events(seed=7)
def test_with_a_seed_ids_and_times_are_the_same_each_time(
    scheduled_events: ScheduledEvents, _run: int
) -> None:
    assert scheduled_events.now == datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert scheduled_events.reboot().id == "6513270E-269E-4D37-B2A7-4DE452E6B438"


def test_an_event_shows_what_it_waits_for(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot()
    assert repr(event).endswith("Reboot of web-0 is Scheduled, due in 15m>")

    approve(scheduled_events.url, event.id)
    scheduled_events.idle()

    assert repr(event).endswith("Reboot of web-0 is Started, approved by web-0>")


def test_an_event_shows_itself_as_it_is(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot()

    approve(scheduled_events.url, event.id)

    assert "Reboot of web-0 is Started, approved by web-0" in repr(event)


def test_what_is_approved_starts_while_nobody_looks(scheduled_events: ScheduledEvents) -> None:
    """A handler may wait for the start of what it approved, and the test for the handler."""
    event = scheduled_events.reboot()
    approve(scheduled_events.url, event.id)

    def is_started() -> bool:
        return seen(scheduled_events.url) == [("Reboot", "Started")]

    scheduled_events.wait_until(is_started)


def test_a_handler_in_another_thread_is_waited_for(scheduled_events: ScheduledEvents) -> None:
    event = scheduled_events.reboot()
    handler = threading.Thread(target=approve, args=(scheduled_events.url, event.id), daemon=True)
    handler.start()

    scheduled_events.wait_until(lambda: event.approved)

    handler.join()
    assert event.approved_by == "web-0"


def test_waiting_ends_and_tells_what_was_asked(scheduled_events: ScheduledEvents) -> None:
    ask(scheduled_events.url)

    with pytest.raises(TimeoutError, match=r"within 0\.01 s(?s:.*)method='GET'"):
        scheduled_events.wait_until(lambda: False, seconds=0.01)


def test_waiting_in_vain_for_code_that_asks_elsewhere_says_where_to_lead_it(
    scheduled_events: ScheduledEvents,
) -> None:
    with pytest.raises(TimeoutError, match=f"is the code led to {scheduled_events.url} "):
        scheduled_events.wait_until(lambda: False, seconds=0)


@pytest.mark.scheduled_events(vms=["web-0", "db-0"])
def test_the_environment_leads_programs_to_a_vm(scheduled_events: ScheduledEvents) -> None:
    url = scheduled_events.url_of("db-0")
    environment = scheduled_events.environment("db-0")

    scheduled_events.freeze("db-0")

    for name in ("AZURE_SCHEDULEDEVENTS_URL", "AZURE_METADATAINSTANCE_URL"):
        base, _, rest = environment[name].partition("/metadata/")
        reply = request(base, "GET", f"/metadata/{rest}", headers={"Metadata": "true"})
        assert "db-0" in reply.body.decode()
    assert f"http://{environment['SCHEDULEDEVENTSIP']}" == url
    assert environment["NO_PROXY"] == environment["no_proxy"]
    assert scheduled_events.environment() != environment


def test_faults_strike_the_vm_that_was_named_so_often(scheduled_events: ScheduledEvents) -> None:
    fault = scheduled_events.faults.add("429", vm="WEB-0", times=2)
    assert faults(scheduled_events) == [fault]

    told = [ask(scheduled_events.url).status for _ in range(3)]

    assert told == [429, 429, 200]
    assert faults(scheduled_events) == []


@pytest.mark.parametrize("kind", [503, "503"])
def test_a_status_is_as_well_a_number_as_a_word(
    scheduled_events: ScheduledEvents, kind: int | str
) -> None:
    scheduled_events.faults.add(kind, times=1)

    assert ask(scheduled_events.url).status == 503


def test_faults_do_not_queue_unless_they_are_of_one_sort(
    scheduled_events: ScheduledEvents,
) -> None:
    scheduled_events.faults.add(429, times=1)
    scheduled_events.faults.add(503, times=1)
    scheduled_events.faults.add("slow", times=1, delay=0)

    told = [ask(scheduled_events.url).status]
    left = [fault.kind.value for fault in faults(scheduled_events)]
    told += [ask(scheduled_events.url).status for _ in range(2)]

    assert told == [429, 503, 200]
    assert left == ["503"], "the first request was late and refused at once"


def test_faults_last_as_long_as_told_by_the_emulated_clock(
    scheduled_events: ScheduledEvents,
) -> None:
    scheduled_events.faults.add("500", seconds=60)
    removed = scheduled_events.faults.add("503")
    assert ask(scheduled_events.url).status == 500

    scheduled_events.advance(seconds=60)
    assert ask(scheduled_events.url).status == 503
    scheduled_events.faults.remove(removed)
    assert ask(scheduled_events.url).status == 200

    scheduled_events.faults.add("410")
    scheduled_events.faults.clear()
    assert ask(scheduled_events.url).status == 200


def test_a_slow_answer_takes_emulated_time_only(scheduled_events: ScheduledEvents) -> None:
    scheduled_events.faults.add("slow", delay=120, times=1)
    told: list[int] = []
    asking = threading.Thread(
        target=lambda: told.append(ask(scheduled_events.url).status), daemon=True
    )
    asking.start()
    scheduled_events.wait_until(lambda: not scheduled_events.faults.in_force)
    assert told == []

    scheduled_events.advance(seconds=120)

    asking.join()
    assert told == [200]


def test_whatever_cannot_be_meant_is_refused_with_the_next_step(
    scheduled_events: ScheduledEvents,
) -> None:
    with pytest.raises(
        Unknown, match=r"no VM db-7: scheduled_events.machines has web-0; the mark "
    ):
        scheduled_events.reboot("db-7")
    with pytest.raises(Unknown, match="no VM db-7"):
        scheduled_events.url_of("db-7")
    with pytest.raises(Unknown, match="no VM db-7"):
        scheduled_events.faults.add("429", vm="db-7")
    with pytest.raises(Malformed, match="forewarn emulate"):
        scheduled_events.faults.add("webhook-duplicate")
    with pytest.raises(Malformed, match='a VM is called by its name, such as "web-0"'):
        scheduled_events.reboot(["web-0"])  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=r"cancel\(\) takes the event that was returned"):
        scheduled_events.cancel("5CB071CC")  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=r"an instant is a datetime, such as event.not_before"):
        scheduled_events.advance_to("noon")  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=r"say how far, such as advance\(minutes=15\)"):
        scheduled_events.advance()
    with pytest.raises(
        Malformed, match="notice is a number of seconds, or a timedelta, and not '1h'"
    ):
        scheduled_events.reboot(notice="1h")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="or leave the notice out"):
        scheduled_events.reboot(notice=60)
    with pytest.raises(Malformed, match="no source is called"):
        scheduled_events.reboot(source="Azure")
    with pytest.raises(Refused, match="only VMs of a scale set") as refused:
        scheduled_events.terminate("web-0")
    assert "scale_sets=" in refused.value.__notes__[0]
    with (
        pytest.raises(Malformed, match="leave the others out"),
        emulated(fleet="fleet.toml", vms=["web-0"]),
    ):
        pass

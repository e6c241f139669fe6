"""The agent's metrics, as Prometheus reads them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from forewarn import __version__
from forewarn.agent import metrics
from forewarn.agent.cases import Case, Result, Run, opened
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.reports import Counts, Report
from forewarn.agent.rules import Verdict
from forewarn.client.documents import SCHEDULED, STARTED, Document, Event
from forewarn.client.tallies import BOUNDS, Tally

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER: Final = NOON + timedelta(minutes=15)
EVENT: Final = Event(
    "A-1", "Reboot", SCHEDULED, ("web-0", "web-1"), not_before=LATER, source="Platform"
)
HELD: Final = Verdict(approves=False, why="a hook failed")
CASE: Final = opened(EVENT, "boot", NOON)
WELL: Final = Run(Hook("10-x", ("x",)), attempt=1, began=NOON, result=Result.READY, code=0)


def families(report: Report, counts: Counts | None = None) -> dict[str, Metric]:
    text = metrics.render(report, counts or Counts())
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(family: Metric, label: str) -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in family.samples}


def test_every_event_of_the_document_is_told_once_for_each_resource() -> None:
    report = Report(NOON, "web-0", Document(7, (EVENT,)))

    told = families(report)

    assert told["azure_scheduledevent_document_incarnation"].samples[0].value == 7
    samples = told["azure_scheduledevent_event"].samples
    assert [sample.labels for sample in samples] == [
        {
            "eventID": "A-1",
            "eventType": "Reboot",
            "resourceType": "VirtualMachine",
            "resource": resource,
            "eventStatus": "Scheduled",
            "notBefore": "Sun, 01 Mar 2026 12:15:00 GMT",
            "eventSource": "Platform",
        }
        for resource in ("web-0", "web-1")
    ]
    assert {sample.value for sample in samples} == {LATER.timestamp()}


def test_what_has_no_time_and_no_resources_is_told_all_the_same() -> None:
    event = replace(EVENT, status=STARTED, not_before=None, resources=())

    told = families(Report(NOON, "web-0", Document(8, (event,))))

    (sample,) = told["azure_scheduledevent_event"].samples
    assert (sample.labels["resource"], sample.labels["notBefore"], sample.value) == ("", "", 0)


def test_a_resource_that_is_named_twice_is_told_once() -> None:
    event = replace(EVENT, resources=("web-0", "web-0"))

    told = families(Report(NOON, "web-0", Document(8, (event,))))

    assert len(told["azure_scheduledevent_event"].samples) == 1


def test_before_the_document_was_read_it_has_no_number() -> None:
    told = families(Report(NOON, trouble="did not answer in time"))

    assert "azure_scheduledevent_document_incarnation" not in told
    assert told["forewarn_agent_trouble"].samples[0].value == 1
    assert told["forewarn_agent_info"].samples[0].labels == {"version": __version__, "name": ""}


@given(st.text(), st.text())
def test_whatever_is_written_in_an_event_is_read_again(kind: str, resource: str) -> None:
    # What cannot be sent as UTF-8 cannot be in a document.
    kind, resource = (one.encode(errors="replace").decode() for one in (kind, resource))
    event = replace(EVENT, type=kind, resources=(resource,))
    text = metrics.render(Report(NOON, "web-0", Document(1, (event,))))

    # As Prometheus does: it knows one end of a line.
    line = next(one for one in text.split("\n") if one.startswith("azure_scheduledevent_event{"))

    (family,) = text_string_to_metric_families(line)
    labels = family.samples[0].labels
    assert (labels["eventType"], labels["resource"]) == (kind, resource)


def test_a_drain_is_told_when_it_begins_and_when_it_is_over() -> None:
    going = replace(CASE, phases={Phase.PREPARE: (replace(WELL, result=None, code=None),)})
    over = replace(going, phases={Phase.PREPARE: (WELL,)}, prepared=NOON + timedelta(seconds=30))
    name = "azure_scheduledevent_event_drain"

    before = families(Report(NOON, "web-0", cases=((going, HELD),)))
    after = families(Report(NOON, "web-0", cases=((over, HELD),)))

    assert values(before[name], "type") == {"start": NOON.timestamp()}
    assert values(after[name], "type") == {
        "start": NOON.timestamp(),
        "finish": NOON.timestamp() + 30,
    }


def test_without_hooks_nothing_is_drained() -> None:
    case = replace(CASE, phases={Phase.PREPARE: ()}, prepared=NOON, approved=LATER)

    told = families(Report(NOON, "web-0", cases=((case, HELD),)))

    assert not told["azure_scheduledevent_event_drain"].samples
    assert values(told["azure_scheduledevent_event_approval"], "eventID") == {
        "A-1": LATER.timestamp()
    }


FAILED: Final = replace(CASE, phases={Phase.PREPARE: (replace(WELL, result=Result.FAILED),)})
READY: Final = replace(CASE, phases={Phase.PREPARE: (WELL,)})


@pytest.mark.parametrize(
    ("case", "state", "held"),
    [
        (CASE, "preparing", 0),
        (READY, "ready", 1),
        (FAILED, "failed", 1),
        (replace(READY, approved=NOON), "approved", 0),
        (replace(READY, event=replace(EVENT, status=STARTED)), "started", 0),
        (replace(READY, is_over=True), "undoing", 0),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_event_in_hand_is_in_one_state(case: Case, state: str, held: int) -> None:
    told = families(Report(NOON, "web-0", cases=((case, HELD),)))

    counted = values(told["forewarn_agent_events"], "state")
    assert {one for one, count in counted.items() if count} == {state}
    assert sum(counted.values()) == 1
    assert told["forewarn_agent_held"].samples[0].value == held


def test_what_is_being_approved_is_not_held() -> None:
    report = Report(NOON, "web-0", cases=((READY, Verdict(approves=True, why="ready")),))

    assert families(report)["forewarn_agent_held"].samples[0].value == 0


def test_hooks_are_counted_by_phase_and_result() -> None:
    ended = {(Phase.PREPARE, Result.READY): 3, (Phase.UNDO, Result.NOTHING_TO_DO): 1}

    told = families(Report(NOON, "web-0"), Counts(ended))

    samples = told["forewarn_agent_hook_runs"].samples
    assert {
        (sample.labels["phase"], sample.labels["result"]): sample.value for sample in samples
    } == {("prepare", "ready"): 3, ("undo", "nothing_to_do"): 1}


def test_requests_are_a_histogram() -> None:
    tally = Tally()
    for seconds in (0.003, 0.03, 40):
        tally = tally.with_answer(timedelta(seconds=seconds))

    told = families(Report(NOON, "web-0"), Counts(requests=tally.with_failure()))

    family = told["azure_scheduledevent_request"]
    buckets = {
        sample.labels["le"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    others = {sample.name: sample.value for sample in family.samples if not sample.labels}
    assert family.type == "histogram"
    assert len(buckets) == len(BOUNDS) + 1
    assert (buckets["0.005"], buckets["0.025"], buckets["0.05"], buckets["+Inf"]) == (1, 1, 2, 3)
    assert others["azure_scheduledevent_request_count"] == 3
    assert others["azure_scheduledevent_request_sum"] == pytest.approx(40.033)
    errors = told["azure_scheduledevent_request_error"]
    assert (errors.type, errors.samples[0].value) == ("counter", 1)

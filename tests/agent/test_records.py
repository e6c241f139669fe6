"""Cases on the disk: what is written is read again, and what is no case is refused; names of files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.cases_at_hand import NOW

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Hook, Phase
from forewarn.agent.names import file_name, run_id
from forewarn.agent.records import dump_case, load_case
from forewarn.client.documents import Event
from forewarn.errors import Malformed

instants = st.none() | st.datetimes(timezones=st.just(NOW.tzinfo))
results = st.none() | st.sampled_from(Result)
lengths = st.none() | st.timedeltas(
    min_value=NOW - NOW, max_value=(NOW.replace(year=2031) - NOW)
).map(lambda length: length - length % (NOW.replace(second=1) - NOW))
texts = st.text(st.characters(codec="utf-8"), max_size=9)
hooks = st.builds(Hook, texts, st.lists(texts, min_size=1).map(tuple), lengths)
runs = st.builds(
    Run,
    hooks,
    attempt=st.integers(0, 9),
    began=instants,
    stopped=instants,
    stopped_as=results,
    result=results,
    code=st.none() | st.integers(0, 255),
    has_done=st.booleans(),
)
events = st.builds(
    Event,
    id=texts.map(lambda text: f"E{text}".upper()),
    type=texts,
    status=texts,
    resources=st.lists(texts).map(tuple),
    not_before=instants,
    description=texts,
    source=texts,
    duration=lengths,
)
cases = st.builds(
    Case,
    events,
    opened=st.datetimes(timezones=st.just(NOW.tzinfo)),
    boot=texts,
    not_before=instants,
    phases=st.dictionaries(st.sampled_from(Phase), st.lists(runs, max_size=2).map(tuple)),
    is_over=st.booleans(),
    approved=instants,
    refused=st.none() | texts,
    prepared=instants,
)


@given(cases)
def test_what_is_written_down_is_read_again(case: Case) -> None:
    assert load_case(dump_case(case)) == case


@given(cases, st.data())
def test_a_record_that_lacks_anything_is_no_case(case: Case, data: st.DataObject) -> None:
    record = json.loads(dump_case(case))
    del record[data.draw(st.sampled_from(sorted(record)))]

    with pytest.raises(Malformed):
        load_case(json.dumps(record).encode())


@pytest.mark.parametrize(
    "run", [{}, None, {"command": "x"}, {"name": "x", "command": [], "limit": 1, "code": 1}]
)
def test_a_run_that_is_none_makes_no_case(run: object) -> None:
    record = json.loads(dump_case(Case(Event("E", "", ""), NOW, "boot")))
    record["phases"] = {"prepare": [run]}

    with pytest.raises(Malformed):
        load_case(json.dumps(record).encode())


def test_an_attempt_that_is_no_number_makes_no_case() -> None:
    run = Run(Hook("a", ("a",)))
    record = json.loads(
        dump_case(Case(Event("E", "", ""), NOW, "boot", phases={Phase.UNDO: (run,)}))
    )
    record["phases"]["undo"][0]["attempt"] = "one"

    with pytest.raises(Malformed, match="without a command or an attempt"):
        load_case(json.dumps(record).encode())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b'{"event": {}}', b"\xff"])
def test_what_is_cut_off_is_no_case(content: bytes) -> None:
    with pytest.raises(Malformed):
        load_case(content)


def test_files_are_called_after_their_events() -> None:
    name = "CD613E30-D8F1-4ADF-91B7-584A2265B1F5"

    assert file_name(name) == name
    assert run_id(name, Phase.UNDO, 0, 2) == f"{name}/undo-0-2"


@given(st.text(), st.text())
def test_whatever_an_event_is_called_no_two_files_are_called_alike(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


@given(st.text(st.characters()) | st.sampled_from(["..", "/", "a/b", "", "x" * 101, "a\n"]))
def test_no_file_is_called_what_no_file_should_be(name: str) -> None:
    found = file_name(name)

    assert 0 < len(found) <= 100
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")

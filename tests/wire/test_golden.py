"""Every byte a guest may read, beside the files that say what it should be.

A file is changed on purpose only: look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from forewarn.core.documents import Document, Notice
from forewarn.core.events import EventSource, EventStatus, EventType
from forewarn.core.names import EventId, Incarnation, MachineName
from forewarn.core.scopes import Machine, Scope, ScopeKind
from forewarn.wire import instance, refusals
from forewarn.wire.refusals import Refusal
from forewarn.wire.scheduled_events import dump_document
from forewarn.wire.versions import INSTANCE_VERSIONS, Version

GOLDEN: Final = Path(__file__).parent / "golden"
REWRITE: Final = "FOREWARN_REWRITE_GOLDEN"

SUBSCRIPTION: Final = "00000000-0000-0000-0000-000000000001"


def notice(
    number: int,
    event_type: EventType,
    *machines: str,
    not_before: datetime | None = None,
    description: str = "",
    source: EventSource = EventSource.PLATFORM,
    duration: timedelta | None = None,
) -> Notice:
    return Notice(
        id=EventId(f"{number:08x}-c957-4500-9bc4-842d6fb531e4"),
        status=EventStatus.STARTED if not_before is None else EventStatus.SCHEDULED,
        type=event_type,
        machines=tuple(MachineName(name) for name in machines),
        not_before=not_before,
        description=description,
        source=source,
        duration=duration,
    )


DOCUMENTS: Final[Mapping[str, tuple[Document, ScopeKind]]] = {
    "empty": (Document(), ScopeKind.STANDALONE),
    "every-type": (
        Document(
            Incarnation(6),
            (
                notice(
                    0xF1,
                    EventType.FREEZE,
                    "web_0",
                    not_before=datetime(2026, 3, 1, 9, 5, 7, tzinfo=UTC),
                    description="Host server is undergoing maintenance.",
                    duration=timedelta(seconds=9),
                ),
                notice(
                    0xF2,
                    EventType.REBOOT,
                    "web_1",
                    not_before=datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC),
                    description="Virtual machine is going to be restarted as requested by authorized user.",
                    source=EventSource.USER,
                ),
                notice(
                    0xF3,
                    EventType.REDEPLOY,
                    "web_2",
                    not_before=datetime(2026, 12, 31, 0, 0, tzinfo=UTC),
                    description="Host server is undergoing an emergency repair.",
                ),
                notice(
                    0xF4,
                    EventType.PREEMPT,
                    "web_3",
                    not_before=datetime(2021, 3, 16, 0, 58, 46, tzinfo=UTC),
                ),
                notice(
                    0xF5,
                    EventType.TERMINATE,
                    "web_4",
                    not_before=datetime(2026, 7, 4, 12, 0, tzinfo=UTC),
                    source=EventSource.USER,
                ),
            ),
        ),
        ScopeKind.SCALE_SET,
    ),
    # As in Azure's page on testing evictions, but for the id.
    "eviction": (
        Document(
            Incarnation(1),
            (
                notice(
                    0xE1,
                    EventType.PREEMPT,
                    "myspotvm",
                    not_before=datetime(2021, 3, 16, 0, 58, 46, tzinfo=UTC),
                ),
            ),
        ),
        ScopeKind.STANDALONE,
    ),
    "started": (
        Document(
            Incarnation(208),
            (
                notice(
                    0xA1,
                    EventType.FREEZE,
                    "aks-nodepool1-21922338-vmss_47",
                    description="Host server is undergoing maintenance.",
                    # No interruption at all, which is not the same as unknown.
                    duration=timedelta(),
                ),
            ),
        ),
        ScopeKind.SCALE_SET,
    ),
    "several-machines": (
        Document(
            Incarnation(2**31 - 1),
            (
                notice(
                    0xB1,
                    EventType.REBOOT,
                    "Db-0",
                    "db-1",
                    "db-2",
                    not_before=datetime(2026, 5, 10, 8, 0, tzinfo=UTC),
                ),
            ),
        ),
        ScopeKind.AVAILABILITY_SET,
    ),
    "cloud-service": (
        Document(
            Incarnation(3),
            (
                notice(
                    0xC1,
                    EventType.REDEPLOY,
                    "FrontEnd_IN_0",
                    "BackEnd_IN_0",
                    not_before=datetime(2026, 5, 10, 8, 0, tzinfo=UTC),
                ),
            ),
        ),
        ScopeKind.CLOUD_SERVICE,
    ),
    "unicode": (
        Document(
            Incarnation(4),
            (
                notice(
                    0xD1,
                    EventType.FREEZE,
                    "büro-0",
                    not_before=datetime(2026, 5, 10, 8, 0, tzinfo=UTC),
                    description='Größeres "Update"\nam Host \\ホスト 🔧',
                    duration=timedelta(seconds=5),
                ),
            ),
        ),
        ScopeKind.STANDALONE,
    ),
}

WEB_3: Final = Machine(
    name=MachineName("Web_3"),
    addresses=("10.0.0.4", "10.0.0.5", "fd00::4"),
    update_domain=2,
    vm_id="5c08b38e-4d57-4c23-ac45-aca61037f084",
    size="Standard_D2s_v5",
    zone="1",
    tags=(("Department", "IT"), ("Owner", "Zoë")),
)
WEB: Final = Scope(
    name="Web",
    resource_group="Shop",
    kind=ScopeKind.SCALE_SET,
    machines=(WEB_3,),
    spot=True,
    location="westus",
)

REFUSALS: Final[Mapping[str, Refusal]] = {
    "400-no-metadata-header": refusals.NO_METADATA_HEADER,
    "400-bad-version": refusals.BAD_VERSION,
    "400-forwarded": refusals.FORWARDED,
    "400-unreadable": refusals.UNREADABLE,
    "400-leaf-is-text": refusals.LEAF_IS_TEXT,
    "400-unknown-format": refusals.UNKNOWN_FORMAT,
    "400-bad-wait": refusals.BAD_WAIT,
    "400-repeated-parameter": refusals.repeated_parameter("api-version"),
    "400-malformed": refusals.malformed("the body is not JSON"),
    "400-unknown-event": refusals.unknown_event("A123BC45-1234-5678-AB90-ABCDEF123456"),
    "403-stranger": refusals.stranger("10.0.0.66"),
    "404-unknown-version": refusals.UNKNOWN_VERSION,
    "404-no-such-path": refusals.NO_SUCH_PATH,
    "405-method-not-allowed": refusals.method_not_allowed("GET", "POST"),
    "408-too-slow": refusals.TOO_SLOW,
    "410-gone": refusals.GONE,
    "413-too-large": refusals.TOO_LARGE,
    "414-target-too-long": refusals.TARGET_TOO_LONG,
    "429-throttled": refusals.THROTTLED,
    "431-headers-too-large": refusals.HEADERS_TOO_LARGE,
    "500-broken": refusals.BROKEN,
    "503-store-away": refusals.STORE_AWAY,
}


def whole_instance(version: str) -> bytes:
    document = instance.instance(WEB, WEB_3, subscription_id=SUBSCRIPTION)
    answer = instance.render(document, (), version=version, form=None)
    assert isinstance(answer, instance.Answer)
    return answer.body


CASES: Final[Mapping[str, bytes]] = {
    **{
        f"scheduledevents-{version.value}-{name}": dump_document(document, version, kind)
        for version in Version
        for name, (document, kind) in DOCUMENTS.items()
    },
    **{f"refusal-{name}": refusal.body for name, refusal in REFUSALS.items()},
    **{f"instance-{version}": whole_instance(version) for version in INSTANCE_VERSIONS},
    "versions": instance.dump_versions(),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_the_golden_ones(name: str) -> None:
    """Keeps S3, S4, S5, S7 and S8: what each version sends, to the byte."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get(REWRITE) == "1":
        path.write_bytes(CASES[name])

    assert path.is_file(), f"no {path.name}: {REWRITE}=1 pytest tests/wire/test_golden.py makes it"
    assert CASES[name] == path.read_bytes(), (
        f"{path.name} differs. If that is what you want: {REWRITE}=1 pytest "
        "tests/wire/test_golden.py, then read the difference line by line"
    )


@pytest.mark.parametrize("name", CASES)
def test_golden_bytes_are_one_line_of_json(name: str) -> None:
    assert b"\n" not in CASES[name]
    assert isinstance(json.loads(CASES[name]), dict)


def test_no_golden_file_is_left_over() -> None:
    left = {path.stem for path in GOLDEN.glob("*.json")} - CASES.keys()

    assert not left, f"nothing makes these any more: {sorted(left)}"


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_why(name: str) -> None:
    refusal = REFUSALS[name]

    assert refusal.status == int(name[:3])
    assert json.loads(refusal.body)["error"]

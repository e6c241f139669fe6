"""The version table, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.events import EventType
from forewarn.core.scopes import ScopeKind
from forewarn.wire import versions
from forewarn.wire.versions import INSTANCE_VERSIONS, NEWEST_VERSIONS, Unsupported, Version

PREVIEW_MEMBERS = ("EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore")
PREVIEW_TYPES = {EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY}


@pytest.mark.parametrize(
    ("version", "added", "types"),
    [
        ("2017-03-01", (), set()),
        ("2017-08-01", (), set()),
        ("2017-11-01", (), {EventType.PREEMPT}),
        ("2019-01-01", (), {EventType.PREEMPT, EventType.TERMINATE}),
        ("2019-04-01", ("Description",), {EventType.PREEMPT, EventType.TERMINATE}),
        ("2019-08-01", ("Description", "EventSource"), {EventType.PREEMPT, EventType.TERMINATE}),
        (
            "2020-07-01",
            ("Description", "EventSource", "DurationInSeconds"),
            {EventType.PREEMPT, EventType.TERMINATE},
        ),
    ],
)
def test_a_version_has_its_members_and_types(
    version: str, added: tuple[str, ...], types: set[EventType]
) -> None:
    """Keeps S3 and S5."""
    known = Version(version)

    assert versions.members(known) == PREVIEW_MEMBERS + added
    assert {type_ for type_ in EventType if versions.shows(known, type_)} == PREVIEW_TYPES | types


def test_versions_are_in_order() -> None:
    assert [version.value for version in Version] == sorted(version.value for version in Version)
    assert list(INSTANCE_VERSIONS) == sorted(INSTANCE_VERSIONS, reverse=True)
    assert len(set(INSTANCE_VERSIONS)) == len(INSTANCE_VERSIONS) == 35
    assert NEWEST_VERSIONS == ("2025-04-07", "2024-07-17", "2024-03-15")


@pytest.mark.parametrize("version", Version)
def test_a_supported_version_is_recognized(version: Version) -> None:
    """Keeps S3."""
    assert versions.classify(version.value) is version


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "latest",
        "{latest}",
        "2020-07-01-preview",
        " 2020-07-01",
        "2020-07-01\n",
        "2020-7-1",
        "\u0662\u0660\u0662\u0660-07-01",
    ],
)
def test_what_is_no_date_is_malformed(name: str | None) -> None:
    """Keeps S3: `latest` is refused."""
    assert versions.classify(name) is Unsupported.MALFORMED
    assert not versions.is_instance_version(name)


@pytest.mark.parametrize("name", ["2024-07-09", "2021-12-13", "2016-01-01", "9999-99-99"])
def test_another_date_is_unknown(name: str) -> None:
    """Keeps S3. Versions of the rest of the metadata service are not versions of events."""
    assert versions.classify(name) is Unsupported.UNKNOWN


@pytest.mark.parametrize("name", INSTANCE_VERSIONS)
def test_the_general_list_is_accepted_for_the_instance(name: str) -> None:
    assert versions.is_instance_version(name)


@pytest.mark.parametrize("name", ["2017-11-01", "2019-01-01", "2019-04-01", "2020-07-01"])
def test_four_versions_of_events_are_none_of_the_instance(name: str) -> None:
    assert not versions.is_instance_version(name)


@given(st.text())
def test_any_text_is_classified(name: str) -> None:
    assert isinstance(versions.classify(name), Version | Unsupported)


def test_only_the_preview_does_not_enforce_the_header() -> None:
    """Keeps S4 and S6."""
    lenient = [version for version in Version if not versions.enforces_header(version)]

    assert lenient == [Version.V2017_03_01]


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("kind", ScopeKind)
def test_only_the_preview_underscores_and_only_iaas_machines(
    version: Version, kind: ScopeKind
) -> None:
    """Keeps S4."""
    name = versions.resource_name("web_0", version, kind)

    if version is Version.V2017_03_01 and kind is not ScopeKind.CLOUD_SERVICE:
        assert name == "_web_0"
    else:
        assert name == "web_0"

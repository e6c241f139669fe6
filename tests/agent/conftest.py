"""The fixture, wherever these tests run: where forewarn is not installed, pytest does not find it."""

from __future__ import annotations

from forewarn.pytest_plugin import scheduled_events as scheduled_events

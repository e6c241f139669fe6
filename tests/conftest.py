"""How hard the suite tries, and what counts as having run it."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

# Deadlines measure the machine, not the code: what is slow is found by looking at durations.
settings.register_profile("dev", max_examples=50, deadline=None)
# The same examples every time: a red build is the change's doing, never bad luck.
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, database=None, print_blob=True
)
# As above, for `make mutants`: that a test fails is enough, the shortest story is for people.
settings.register_profile(
    "mutants",
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
settings.register_profile(
    "nightly",
    max_examples=5_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Whatever a shell starts in the background ignores Ctrl-C, and so do the programs that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where FOREWARN_NO_SKIPS is set, a skipped test is a failure: absence proves nothing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("FOREWARN_NO_SKIPS") != "1" or reporter is None:
        return
    skipped = len(reporter.stats.get("skipped", ()))
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.ensure_newline()
        reporter.write_line(f"{skipped} skipped, and FOREWARN_NO_SKIPS allows none", red=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured and did not judge."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")

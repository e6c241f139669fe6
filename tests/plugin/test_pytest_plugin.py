"""The plugin as pytest loads it: in runs of its own, alone, beside pytest-xdist and pytest-asyncio."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

import forewarn.pytest_plugin

pytest_plugins = ["pytester"]

SOURCES = str(Path(forewarn.__file__).parents[1])
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"

STORY = """
    import json
    import urllib.request

    import pytest


    def ask(url, body=None):
        asked = urllib.request.Request(
            f"{url}/metadata/scheduledevents?api-version=2020-07-01",
            headers={"Metadata": "true"},
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")
"""
REBOOTS = """
    @pytest.mark.parametrize("number", range(COUNT))
    def test_a_reboot(scheduled_events, number):
        event = scheduled_events.reboot("web-0")
        (shown,) = ask(scheduled_events.url)["Events"]
        scheduled_events.advance(minutes=14)
        ask(scheduled_events.url, {"StartRequests": [{"EventId": shown["EventId"]}]})
        assert event.approved_by == "web-0"
        assert ask(scheduled_events.url)["Events"][0]["EventStatus"] == "Started"
        scheduled_events.advance(minutes=1)
        assert event.completed
        assert ask(scheduled_events.url)["Events"] == []
"""
# What a process holds, told once it has warmed up and at its end.
HOLDINGS = """
    import gc
    import json
    import os
    import sys
    import threading
    from pathlib import Path

    import pytest

    WARM = 50
    told = {"tests": 0}


    def holdings():
        # Threads that were told to end do so in their own time.
        for thread in threading.enumerate():
            if thread.name.startswith("forewarn"):
                thread.join(10)
        gc.collect()
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "blocks": sys.getallocatedblocks(),
            "kilobytes": int(Path("/proc/self/statm").read_text().split()[1]) * 4,
        }


    def pytest_runtest_logfinish():
        told["tests"] += 1
        if told["tests"] == WARM:
            told["early"] = holdings()


    def pytest_sessionfinish(session):
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        if worker is not None:
            told["late"] = holdings()
            Path(session.config.rootpath, f"{worker}.json").write_text(json.dumps(told))
"""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run what was written, with the plugins that are named, and no others that are installed."""
    # Its own, however empty: else it would be told what a project around it is told.
    pytester.path.joinpath("pytest.ini").touch()
    path = os.pathsep.join([SOURCES, *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable, "-m", "pytest", "-p", "forewarn.pytest_plugin", "-p", "no:cacheprovider",
        "--strict-markers", "-W", "error", *options,
    ]  # fmt: skip
    started = subprocess.run(
        command, cwd=pytester.path, env=environment,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    out, err = started.stdout.splitlines(), started.stderr.splitlines()
    return pytest.RunResult(started.returncode, out, err, 0.0)


def test_pytest_finds_the_plugin_by_itself_where_forewarn_is_installed() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]

    assert project["entry-points"]["pytest11"] == {"forewarn": forewarn.pytest_plugin.__name__}


def test_whoever_does_not_use_it_does_not_pay_for_it() -> None:
    code = "import sys, pytest; import forewarn.pytest_plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, *filter(None, sys.path)])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    ours = {name for name in done.stdout.split() if name.startswith("forewarn")}
    assert ours == {"forewarn", "forewarn.pytest_plugin"}


def test_the_fixture_and_the_mark_are_described(pytester: pytest.Pytester) -> None:
    shown = run(pytester, "--fixtures", "-v")
    marks = run(pytester, "--markers")

    shown.stdout.fnmatch_lines(["scheduled_events*", "*a clock that moves only when told*"])
    marks.stdout.fnmatch_lines(["@pytest.mark.scheduled_events(vms=..., *"])


def test_a_mark_says_which_vms_there_are(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_one_by_default(scheduled_events):
            assert scheduled_events.machines == ("web-0",)

        @pytest.mark.scheduled_events(
            vms=["a"], spots=["b"], availability_sets=["c:1"], scale_sets=["d:1"], seed=7
        )
        def test_all_kinds(scheduled_events):
            assert scheduled_events.machines == ("a", "b", "c-0", "d_0")

        @pytest.mark.scheduled_events(fleet="fleet.toml")
        class TestFile:
            def test_beside_the_test(self, scheduled_events):
                assert scheduled_events.machines == ("from-file",)

            @pytest.mark.scheduled_events(vms=["a"])
            def test_the_nearest_mark_counts(self, scheduled_events):
                assert scheduled_events.machines == ("a",)
        """
    )
    pytester.path.joinpath("fleet.toml").write_text(
        '[[scope]]\nname = "alone"\n[[scope.machine]]\nname = "from-file"\naddress = "10.0.0.1"\n'
    )

    run(pytester).assert_outcomes(passed=4)


def test_a_mark_that_cannot_be_meant_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.scheduled_events(vm=["web-0"])
        def test_misspelled(scheduled_events): ...

        @pytest.mark.scheduled_events("web-0")
        def test_unnamed(scheduled_events): ...

        @pytest.mark.scheduled_events(availability_sets=["web"])
        def test_uncounted(scheduled_events): ...

        @pytest.mark.scheduled_events(vms="web-0")
        def test_unlisted(scheduled_events): ...

        @pytest.mark.scheduled_events(fleet="no-such.toml")
        def test_unwritten(scheduled_events): ...

        @pytest.mark.scheduled_events(fleet=5)
        def test_no_path(scheduled_events): ...

        @pytest.mark.scheduled_events(seed="x")
        def test_no_number(scheduled_events): ...

        @pytest.mark.scheduled_events(vms=[1])
        def test_no_names(scheduled_events): ...

        @pytest.mark.scheduled_events(vms=["a", "a"])
        def test_twice(scheduled_events): ...
        """
    )

    done = run(pytester)

    done.assert_outcomes(errors=9)
    assert "Traceback" not in done.stdout.str()
    assert "scheduled_events.py:" not in done.stdout.str(), "our own lines help nobody"
    done.stdout.fnmatch_lines(
        [
            "*@pytest.mark.scheduled_events does not know 'vm': give vms, *",
            "*@pytest.mark.scheduled_events does not know 'web-0': give vms, *",
            "*@pytest.mark.scheduled_events cannot be meant: availability set web: say NAME:COUNT, *",
            '*@pytest.mark.scheduled_events cannot be meant: vms is a list: write vms=[[]"web-0"]',
            "*@pytest.mark.scheduled_events cannot be meant: *no-such.toml: cannot be read*",
            "*@pytest.mark.scheduled_events cannot be meant: fleet is a path, *",
            "*@pytest.mark.scheduled_events cannot be meant: a seed is a whole number, *",
            "*@pytest.mark.scheduled_events cannot be meant: vms is a list of names, *",
            "*@pytest.mark.scheduled_events cannot be meant: *",
        ]
    )


def test_each_test_has_a_world_of_its_own(pytester: pytest.Pytester) -> None:
    """Keeps N2: whatever one test leaves behind, the next does not meet."""
    pytester.makepyfile(
        STORY
        + """
    @pytest.mark.parametrize("number", range(3))
    def test_nothing_is_left(scheduled_events, number):
        assert ask(scheduled_events.url) == {"DocumentIncarnation": 1, "Events": []}
        assert len(scheduled_events.requests) == 1
        scheduled_events.faults.add("500")
        scheduled_events.reboot()
    """
    )

    run(pytester).assert_outcomes(passed=3)


def test_handlers_that_wait_in_a_loop_are_tested_in_that_loop(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        STORY
        + """
    import asyncio

    async def handle(url):
        while True:
            for event in (await asyncio.to_thread(ask, url))["Events"]:
                approval = {"StartRequests": [{"EventId": event["EventId"]}]}
                await asyncio.to_thread(ask, url, approval)
                return
            await asyncio.sleep(0.01)

    @pytest.mark.asyncio
    async def test_a_handler(scheduled_events):
        handler = asyncio.create_task(handle(scheduled_events.url))
        event = scheduled_events.reboot()
        await handler
        assert event.approved_by == "web-0"
        scheduled_events.advance(minutes=1)
        assert event.completed

    @pytest.mark.asyncio
    async def test_waiting_for_one(scheduled_events):
        handler = asyncio.create_task(handle(scheduled_events.url))
        event = scheduled_events.reboot()
        await asyncio.to_thread(scheduled_events.wait_until, lambda: event.approved)
        await handler
    """
    )

    loops = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
    run(pytester, *loops).assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_thousand_tests_leave_neither_sockets_nor_threads_nor_memory_behind(
    pytester: pytest.Pytester,
) -> None:
    """Each with its GETs and its POST over a socket; shared out by pytest-xdist."""
    pytester.makeconftest(HOLDINGS)
    pytester.makepyfile(STORY + REBOOTS.replace("COUNT", "1000"))

    run(pytester, "-q", "-p", "xdist.plugin", "-n", "2").assert_outcomes(passed=1000)

    for worker in ("gw0", "gw1"):
        told = msgspec.json.decode(pytester.path.joinpath(f"{worker}.json").read_bytes())
        early, late = told["early"], told["late"]
        tests = told["tests"] - 50
        assert tests > 100, "each has had its part"
        assert late["descriptors"] <= early["descriptors"]
        assert late["threads"] == early["threads"]
        # pytest itself keeps a report of each test; a world that stayed would be thousands.
        assert (late["blocks"] - early["blocks"]) / tests < 150
        assert late["kilobytes"] - early["kilobytes"] < 24 * tests

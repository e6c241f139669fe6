"""Commands for which 169.254.169.254 really is the world, in networks that the test makes itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from forewarn.errors import Malformed
from forewarn.testing import launcher
from forewarn.testing.namespaces import NoNamespaces
from forewarn.testing.scheduled_events import ScheduledEvents

# Whoever has a proxy is not sent there by it.
GET = [
    "curl", "-sS", "--noproxy", "*", "-m", "10", "-H", "Metadata:true",
    "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",
]  # fmt: skip
HANDLER = """
import json, time, urllib.request
URL = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
def ask(data=None):
    asked = urllib.request.Request(URL, headers={"Metadata": "true"}, data=data)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=10) as answer:
        return answer.read()
while True:
    for event in json.loads(ask())["Events"]:
        if event["EventStatus"] == "Scheduled":
            ask(json.dumps({"StartRequests": [{"EventId": event["EventId"]}]}).encode())
    time.sleep(0.01)
"""


@pytest.mark.scheduled_events(availability_sets=["web:2"])
def test_a_command_finds_its_own_document_at_the_real_address(
    scheduled_events: ScheduledEvents,
) -> None:
    """Keeps S1: plain HTTP at 169.254.169.254, port 80, as on Azure."""
    event = scheduled_events.reboot("web-1")

    done = scheduled_events.run(GET, vm="web-1", check=True)

    assert event.id in done.stdout
    assert [one.machine for one in scheduled_events.requests] == ["web-1"]


def test_a_command_runs_as_the_user_who_runs_the_test(scheduled_events: ScheduledEvents) -> None:
    done = scheduled_events.run(["sh", "-c", "id -u; id -g; pwd; cat"], said="heard", cwd="/")

    assert done.stdout.splitlines() == [str(os.getuid()), str(os.getgid()), "/", "heard"]


def test_a_handler_is_started_and_ended_with_the_test(scheduled_events: ScheduledEvents) -> None:
    handler = scheduled_events.start([sys.executable, "-c", HANDLER])
    event = scheduled_events.reboot("web-0")

    scheduled_events.wait_until(lambda: event.approved)

    assert event.approved_by == "web-0"
    assert handler.process.poll() is None
    assert handler.stop() == -15


def test_what_a_command_started_is_ended_with_it(scheduled_events: ScheduledEvents) -> None:
    story = "sleep 60 >/dev/null 2>&1 & echo $!"
    done = scheduled_events.run(["sh", "-c", story], check=True)
    child = Path("/proc", done.stdout.strip(), "status")

    # Whoever adopted it may not have noticed its end yet.
    scheduled_events.wait_until(lambda: not child.exists() or "(zombie)" in child.read_text())


def test_nothing_else_is_in_its_network(scheduled_events: ScheduledEvents) -> None:
    port = scheduled_events.url.rpartition(":")[2]

    there = scheduled_events.run(["curl", "-s", "--noproxy", "*", f"http://127.0.0.1:{port}/"])
    addresses = scheduled_events.run(
        [sys.executable, "-c", "import socket; print(socket.if_nameindex())"]
    )

    routes = scheduled_events.run(["cat", "/proc/net/fib_trie"]).stdout

    assert there.returncode == 7
    assert "169.254.169.254\n" in routes
    assert "169.254.0.0" not in routes, "that address alone"
    assert addresses.stdout == "[(1, 'lo')]\n"


def test_a_command_has_its_signals_as_a_shell_gives_them(
    scheduled_events: ScheduledEvents,
) -> None:
    done = scheduled_events.run(["sh", "-c", "grep SigIgn /proc/self/status"])

    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & (1 << 12), "SIGPIPE ends programs, as everywhere"


def test_environment_and_status_are_the_commands_own(scheduled_events: ScheduledEvents) -> None:
    command = ["/bin/sh", "-c", "echo $WHO; echo no >&2; exit 3"]

    done = scheduled_events.run(command, env={"WHO": "me"})

    assert (done.returncode, done.stdout, done.stderr) == (3, "me\n", "no\n")
    with pytest.raises(subprocess.CalledProcessError):
        scheduled_events.run(command, check=True)
    with pytest.raises(subprocess.TimeoutExpired, match=r"Command '\['sleep', '60'\]' timed out"):
        scheduled_events.run(["sleep", "60"], timeout=0.01)


def test_what_cannot_be_run_is_said(scheduled_events: ScheduledEvents) -> None:
    with pytest.raises(Malformed, match="cannot run no-such-program: No such file"):
        scheduled_events.run(["no-such-program"])
    with pytest.raises(Malformed, match="no command"):
        scheduled_events.run([])


def test_commands_leave_nothing_behind(scheduled_events: ScheduledEvents) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    scheduled_events.run(["true"])
    before = descriptors()
    for _ in range(20):
        scheduled_events.run(["true"])

    assert descriptors() == before


def test_where_namespaces_are_not_allowed_it_is_said(scheduled_events: ScheduledEvents) -> None:
    """Inside a user namespace that may have no more of them, as in a hardened container."""
    # The limit is the namespace's own: nobody else's is touched.
    story = """
        echo 0 > /proc/sys/user/max_user_namespaces || exit 77
        exec "$PYTHON" -c 'if True:
            from forewarn.testing.scheduled_events import emulated
            with emulated() as scheduled_events:
                scheduled_events.run(["true"])
        '
    """
    done = subprocess.run(
        ["/usr/bin/unshare", "--map-root-user", "sh", "-c", story],
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this kernel's limits are not a namespace's own")

    assert NoNamespaces.__name__ in done.stderr
    assert "unshare: No space left on device" in done.stderr
    assert "point the code at `url` instead" in done.stderr
    scheduled_events.skip_without_namespaces()


def test_a_launcher_whose_master_is_gone_runs_nothing(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = ["touch", str(tmp_path / "x")]
    with subprocess.Popen(
        [sys.executable, "-I", "-S", launcher.__file__, str(theirs.fileno()), *command],
        pass_fds=[theirs.fileno()],
    ) as launching:
        theirs.close()
        _, descriptors, *_ = socket.recv_fds(ours, 100, 1)
        os.close(descriptors[0])
        ours.close()

    assert launching.returncode == launcher.CANNOT_RUN
    assert not (tmp_path / "x").exists()


def test_nobody_in_particular_can_do_it() -> None:
    """Whoever runs this, it is tried as a user with no rights at all."""
    story = """if True:
        import ctypes, os
        from forewarn.testing import launcher
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            # A process that changed its user may not write to its own /proc; one that is started may.
            ctypes.CDLL(None).prctl(4, 1)
        before = os.getuid(), os.getgid()
        launcher.leave()
        launcher.raise_loopback()
        with launcher.listen() as listening:
            assert listening.getsockname() == ("169.254.169.254", 80)
        assert (os.getuid(), os.getgid()) == before != (0, 0)
    """
    done = subprocess.run(
        [sys.executable, "-c", story],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_waiting_in_vain_for_a_program_that_has_died_says_so(
    scheduled_events: ScheduledEvents,
) -> None:
    command = scheduled_events.start(["sh", "-c", "exit 7"])
    command.process.wait(30)

    with pytest.raises(TimeoutError, match=r"has ended with status 7: sh -c 'exit 7'"):
        scheduled_events.wait_until(lambda: False, seconds=0)


def test_a_line_for_a_shell_is_no_command(scheduled_events: ScheduledEvents) -> None:
    with pytest.raises(Malformed, match=r"is a list of words: write \['curl', '-s', 'x'\]"):
        scheduled_events.run("curl -s x")

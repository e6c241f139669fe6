"""The package for Debian and Ubuntu: built, looked into, run from where it was unpacked, installed and purged."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from forewarn.testing.processes import ServiceProcess

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb"),
]

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = ROOT / "packaging" / "forewarn-agent.service"
SECONDS_MAX: Final = 60
FLEET: Final = """
[[scope]]
name = "web"
kind = "availability-set"
enabled = "always"
[[scope.machine]]
name = "web-0"
address = "127.0.1.10"
"""


def build(into: Path, *options: str, environment: Mapping[str, str] | None = None) -> Path:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "deb.py"), "--into", str(into), *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
    return root


def debians_python() -> str:
    """Debian's own Python, if it is new enough."""
    usual = "/usr/bin/python3"
    program = "import sys; sys.exit(sys.version_info < (3, 11))"
    is_new = (
        Path(usual).exists() and not subprocess.run([usual, "-c", program], check=False).returncode
    )
    return usual if is_new else sys.executable


def field(package: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "-f", str(package), name], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    told = {"SOURCE_DATE_EPOCH": "1700000000"}
    first = build(tmp_path / "a", environment=told)
    before = os.umask(0o077)
    try:
        second = build(tmp_path / "b", environment={**told, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    finally:
        os.umask(before)

    assert first.read_bytes() == second.read_bytes()


def test_the_package_says_what_it_is_and_needs(package: Path) -> None:
    assert package.name == f"forewarn-agent_{field(package, 'Version')}_all.deb"
    assert field(package, "Depends") == "python3 (>= 3.11)"
    assert field(package, "Recommends") == ""
    assert field(package, "Architecture") == "all"
    assert int(field(package, "Installed-Size")) > 50


def test_everything_is_in_its_place_and_roots(package: Path) -> None:
    listed = subprocess.run(
        ["dpkg-deb", "-c", str(package)], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    rows = [line.split() for line in listed]
    assert {row[1] for row in rows} == {"root/root"}
    rights = {row[5].removeprefix("."): row[0] for row in rows}
    assert rights["/usr/bin/forewarn-agent"] == "-rwxr-xr-x"
    for phase in ("prepare", "started", "undo"):
        assert rights[f"/etc/forewarn/hooks.d/{phase}/"] == "drwxr-xr-x"
    for file in (
        *("/lib/systemd/system/forewarn-agent.service", "/etc/forewarn/agent.toml"),
        *("/etc/forewarn/hooks.d/README", "/usr/share/man/man8/forewarn-agent.8.gz"),
        *("/usr/share/doc/forewarn-agent/copyright", "/usr/share/doc/forewarn-agent/changelog.gz"),
    ):
        assert rights[file] == "-rw-r--r--"
    modules = [name for name in rights if name.startswith("/usr/lib/forewarn-agent/forewarn/")]
    tops = {name.split("/")[5] for name in modules}
    own = {"__init__.py", "errors.py", "statuses.py", "systemd.py", "client", "tables", "agent"}
    assert tops == {"", *own}
    assert not [name for name in rights if "__pycache__" in name or name.endswith(".pyc")]


def test_the_scripts_are_understood_by_a_posix_shell(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-e", str(package), str(tmp_path)], check=True)

    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", str(tmp_path / script)], check=True)
        assert os.access(tmp_path / script, os.X_OK)
    assert (tmp_path / "conffiles").read_text().splitlines() == [
        "/etc/forewarn/agent.toml",
        "/etc/forewarn/hooks.d/README",
    ]


def test_the_readme_of_hooks_has_every_variable_and_every_phase(unpacked: Path) -> None:
    page = (unpacked / "etc/forewarn/hooks.d/README").read_text()
    source = (ROOT / "src/forewarn/agent/hooks.py").read_text()

    assert set(re.findall(r"EVENT_[A-Z]+", source)) == set(re.findall(r"EVENT_[A-Z]+", page))


# -- at work ---------------------------------------------------------------------------------------


def test_what_was_unpacked_drains_approves_and_undoes(unpacked: Path, tmp_path: Path) -> None:
    """The package needs nothing but Debian's Python: an event of a real service goes by."""
    diary = tmp_path / "diary"
    for phase in ("prepare", "started", "undo"):
        hook = tmp_path / "hooks.d" / phase / "10-diary"
        hook.parent.mkdir(parents=True)
        hook.write_text(f'#!/bin/sh\necho "$EVENT_PHASE $EVENT_TYPE $EVENT_NAME" >> {diary}\n')
        hook.chmod(0o755)
    file = tmp_path / "agent.toml"
    options = ("--metadata", "127.0.0.1:0=web-0")
    with ServiceProcess(tmp_path / "data", FLEET, *options) as service:
        file.write_text(
            f'endpoint = "{service.metadata[0]}"\nstate = "{tmp_path}/state"\n'
            f'hooks = "{tmp_path}/hooks.d"\nlisten = ""\n'
        )
        command = [debians_python(), "-IB", str(unpacked / "usr/bin/forewarn-agent")]
        with subprocess.Popen(
            [*command, "--config", str(file)], stderr=subprocess.PIPE, text=True, env={}
        ) as agent:
            service.announce("Freeze", "web-0", "--duration", "1s")
            end = time.monotonic() + SECONDS_MAX
            while not is_written(diary, 3) and time.monotonic() < end:
                time.sleep(0.1)
            agent.send_signal(signal.SIGTERM)
            _, log = agent.communicate(timeout=SECONDS_MAX)

    assert diary.read_text().splitlines() == [
        *("prepare Freeze web-0", "started Freeze web-0", "undo Freeze web-0"),
    ], log
    assert agent.returncode == 0, log
    assert not list(unpacked.rglob("__pycache__")), "who is root writes nothing beside"


def is_written(file: Path, lines: int) -> bool:
    return file.exists() and len(file.read_text().splitlines()) >= lines


def test_the_command_calls_itself_by_its_name(unpacked: Path) -> None:
    done = subprocess.run(
        [debians_python(), "-IB", str(unpacked / "usr/bin/forewarn-agent"), "tset"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith('forewarn-agent: there is no command "tset" (did you mean "test"')


# -- systemd ---------------------------------------------------------------------------------------

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze"
)


def verified(unit: str, units: Path) -> str:
    """What systemd has to say of a unit, when it is started with all that this brings along."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
    )
    about = [line for line in done.stderr.splitlines() if "forewarn" in line or "cycle" in line]
    return "\n".join(about)


def put_units(units: Path, unpacked: Path, *, unit: str) -> None:
    """The agent's unit, as if it were enabled, beside a service of the same target."""
    here = unit.replace("/usr/bin/forewarn-agent", str(unpacked / "usr/bin/forewarn-agent"))
    (units / "forewarn-agent.service").write_text(here)
    (units / "web.service").write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    wants = units / "multi-user.target.wants"
    wants.mkdir()
    for name in ("forewarn-agent.service", "web.service"):
        (wants / name).symlink_to(units / name)


@needs_systemd
def test_systemd_understands_the_unit_and_finds_no_circle(unpacked: Path, tmp_path: Path) -> None:
    put_units(tmp_path, unpacked, unit=UNIT.read_text())

    assert verified("forewarn-agent.service", tmp_path) == ""
    # Who is after multi-user.target and wanted by it might be thought to wait for itself.
    assert verified("multi-user.target", tmp_path) == ""
    assert verified("graphical.target", tmp_path) == ""


@needs_systemd
def test_a_circle_would_have_been_found(unpacked: Path, tmp_path: Path) -> None:
    circle = UNIT.read_text().replace("[Service]", "Before=web.service\n[Service]", 1)
    put_units(tmp_path, unpacked, unit=circle)

    assert "cycle" in verified("multi-user.target", tmp_path)


# -- installed -------------------------------------------------------------------------------------


class Machine:
    """A copy of this system that vanishes with the test: what is written there is in memory."""

    def __init__(self, place: Path, shared: Path) -> None:
        script = (
            "set -e; mount -t tmpfs none {0}; mkdir {0}/up {0}/work {0}/root;"
            "mount -t overlay overlay -o lowerdir=/,upperdir={0}/up,workdir={0}/work {0}/root;"
            "mkdir -p {0}/root{1}; mount --bind {1} {0}/root{1};"
            "mount --bind /dev {0}/root/dev; mount -t proc proc {0}/root/proc;"
            "mount -t tmpfs none {0}/root/run;"
            "echo ready; exec chroot {0}/root /bin/sh"
        )
        self._shell = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script.format(place, shared)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._shell.stdout is not None
        self.is_there = self._shell.stdout.readline() == "ready\n"

    def run(self, line: str) -> tuple[int, str]:
        """Its status, and what it said."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f'( {line} ) < /dev/null; echo "=== $?"\n')
        self._shell.stdin.flush()
        said: list[str] = []
        for answer in self._shell.stdout:
            if answer.startswith("=== "):
                return int(answer.removeprefix("=== ")), "".join(said)
            said.append(answer)
        raise AssertionError(f"the shell ended: {''.join(said)}")

    def close(self) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.close()
        self._shell.wait(SECONDS_MAX)
        self._shell.stdout.close()


@pytest.fixture
def machine(tmp_path: Path, package: Path) -> Iterator[Machine]:
    if os.geteuid() != 0 or not Path("/var/lib/dpkg/status").exists():
        pytest.skip("only root installs packages, and only on Debian and its kin")
    place = tmp_path / "machine"
    place.mkdir()
    machine = Machine(place, package.parent)
    try:
        if not machine.is_there:
            pytest.skip("there are no overlays here")
        yield machine
    finally:
        machine.close()


def test_it_is_installed_upgraded_removed_and_purged(machine: Machine, package: Path) -> None:
    newer = build(package.parent / "newer", "--version", "999.0")
    if debians_python() != "/usr/bin/python3":
        pytest.skip("Debian's Python is too old for the package")

    status, said = machine.run(f"dpkg -i {package}")
    assert status == 0, said
    assert machine.run("dpkg --verify forewarn-agent") == (0, "")
    assert machine.run("forewarn-agent --version")[0] == 0
    assert machine.run("forewarn-agent explain --type Reboot --name x")[0] == 0
    enabled = "/etc/systemd/system/multi-user.target.wants/forewarn-agent.service"
    if shutil.which("deb-systemd-helper"):
        assert machine.run(f"test -L {enabled}")[0] == 0

    # What the owner wrote survives an upgrade, and what was switched off stays so.
    machine.run("echo 'undo_waits = false' >> /etc/forewarn/agent.toml")
    machine.run("printf '#!/bin/sh\\n' > /etc/forewarn/hooks.d/prepare/10-mine")
    machine.run("mkdir -p /var/lib/forewarn-agent/cases")
    machine.run(f"rm -f {enabled}")
    status, said = machine.run(f"dpkg -i {newer}")
    assert status == 0, said
    assert machine.run("tail -n 1 /etc/forewarn/agent.toml") == (0, "undo_waits = false\n")
    assert machine.run("test -e /etc/forewarn/hooks.d/prepare/10-mine")[0] == 0
    assert machine.run("test -d /var/lib/forewarn-agent/cases")[0] == 0
    assert machine.run(f"test -L {enabled}")[0] != 0

    assert machine.run("dpkg -r forewarn-agent")[0] == 0
    assert machine.run("test -e /usr/lib/forewarn-agent")[0] != 0
    assert machine.run("test -e /etc/forewarn/agent.toml")[0] == 0
    assert machine.run("test -d /var/lib/forewarn-agent/cases")[0] == 0

    machine.run("rm /etc/forewarn/hooks.d/prepare/10-mine")
    status, said = machine.run("dpkg -P forewarn-agent")
    assert status == 0, said
    assert machine.run(
        "find /etc/forewarn /var/lib/forewarn-agent 2>&1 | grep -v 'No such file'"
    ) == (1, "")
    assert machine.run(
        "find /etc /usr/bin /usr/lib /usr/share /lib /var/lib -name '*forewarn-agent*'"
    ) == (0, "")


# In the place of systemctl, in a machine whose systemd is not running: notes what it was told.
SYSTEMCTL: Final = """\
#!/bin/sh
case "$*" in
*is-enabled*) echo enabled; exit 0 ;;
*is-active*multi-user.target*) test ! -e /run/booting; exit ;;
*is-active*) exit 3 ;;
esac
echo "$*" >> /run/told
"""


@pytest.mark.skipif(shutil.which("deb-systemd-invoke") is None, reason="no deb-systemd-invoke")
def test_it_is_started_stopped_and_never_waited_for_in_a_boot(
    machine: Machine, package: Path
) -> None:
    if debians_python() != "/usr/bin/python3":
        pytest.skip("Debian's Python is too old for the package")
    note = package.parent / "systemctl"
    note.write_text(SYSTEMCTL)
    machine.run(f"install -m 0755 {note} /usr/bin/systemctl; mkdir -p /run/systemd/system")
    machine.run("rm -f /usr/sbin/policy-rc.d")

    def told(line: str) -> list[str]:
        machine.run("rm -f /run/told")
        status, said = machine.run(line)
        assert status == 0, said
        return machine.run("grep -E '(start|stop) forewarn-agent.service' /run/told")[
            1
        ].splitlines()

    [started] = told(f"dpkg -i {package}")
    [restarted] = told(f"dpkg -i {package}")
    [stopped] = told("dpkg -P forewarn-agent")
    machine.run("touch /run/booting")
    [begun] = told(f"dpkg -i {package}")
    machine.run("printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d")
    machine.run("chmod +x /usr/sbin/policy-rc.d")

    assert (started, restarted, stopped, begun) == (
        "--quiet --system start forewarn-agent.service",
        "--quiet --system restart forewarn-agent.service",
        "stop forewarn-agent.service",
        "--no-block start forewarn-agent.service",
    )
    assert told(f"dpkg -i {package}") == []

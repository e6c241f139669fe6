"""The environment of Azure's clients, and how az is set up."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from forewarn.cli.main import main
from forewarn.testing.processes import ServiceProcess

pytestmark = pytest.mark.end_to_end

SUBSCRIPTION: Final = "11111111-2222-3333-4444-555555555555"
FLEET: Final = f"""
subscription_id = "{SUBSCRIPTION}"

[[scope]]
name = "web"
resource_group = "rg1"
machine = [{{ name = "web-0" }}]
"""
VARIABLES: Final = {
    *("ARM_ENDPOINT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "AZURE_CONFIG_DIR"),
    *("AZURE_AUTHORITY_HOST", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"),
    "AZURE_SUBSCRIPTION_ID",
}
# Notes what it was told, and by which means.
AZ: Final = """#!/bin/sh
echo "$*" >> "$AZURE_CONFIG_DIR/told"
echo "$AZURE_CORE_COLLECT_TELEMETRY $REQUESTS_CA_BUNDLE" >> "$AZURE_CONFIG_DIR/surroundings"
case "$*" in
  "cloud show"*) [ -e "$AZURE_CONFIG_DIR/registered" ] ;;
  "cloud register"*) touch "$AZURE_CONFIG_DIR/registered" ;;
  "login"*) cat > "$AZURE_CONFIG_DIR/secret" ;;
esac
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path_factory.mktemp("azure"), FLEET) as process:
        yield process


@pytest.fixture
def az(tmp_path: Path) -> Path:
    return program(tmp_path / "az", AZ)


def program(file: Path, script: str) -> Path:
    file.write_text(script)
    file.chmod(0o755)
    return file


def test_the_environment_is_told_as_an_object(service: ServiceProcess) -> None:
    told = service.json("env")

    operator = service.operator
    assert set(told) == VARIABLES
    assert told["ARM_ENDPOINT"] == told["AZURE_AUTHORITY_HOST"] == service.control
    assert told["AZURE_TENANT_ID"] == "adfs"
    assert told["AZURE_CLIENT_ID"] == operator["client_id"]
    assert told["AZURE_CLIENT_SECRET"] == operator["client_secret"]
    assert told["AZURE_SUBSCRIPTION_ID"] == SUBSCRIPTION
    assert told["NODE_EXTRA_CA_CERTS"] == str(service.ca)
    assert told["REQUESTS_CA_BUNDLE"] == str(service.data / "ca-bundle.pem")
    assert service.ca.read_bytes() in Path(told["REQUESTS_CA_BUNDLE"]).read_bytes()
    private = Path(told["AZURE_CONFIG_DIR"])
    assert private.stat().st_mode & 0o777 == 0o700
    assert "collect_telemetry = no" in (private / "config").read_text()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_takes_the_environment_as_it_is_printed(
    service: ServiceProcess, shell: str
) -> None:
    printed = service.run("env").stdout

    script = f'{printed}\nfor name in {" ".join(VARIABLES)}; do printenv "$name"; done'
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )

    told = service.json("env")
    assert done.stdout.splitlines() == [told[variable] for variable in VARIABLES]


def test_a_secret_on_a_terminal_comes_with_a_warning(service: ServiceProcess) -> None:
    terminal, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "forewarn", "env", "--data", str(service.data)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=True,
        text=True,
        timeout=60,
    )
    os.close(theirs)
    os.close(terminal)

    assert "this shows a secret" in done.stderr
    assert service.run("env").stderr == ""


def test_other_shells_have_a_spelling_of_their_own(service: ServiceProcess, tmp_path: Path) -> None:
    odd = tmp_path / "it's $odd"
    odd.mkdir()
    (odd / "ca.pem").write_bytes(service.ca.read_bytes())

    fish = service.run("env", "--shell", "fish", "--ca", str(odd / "ca.pem")).stdout
    power = service.run("env", "--shell", "powershell", "--ca", str(odd / "ca.pem")).stdout

    assert f"set -gx ARM_ENDPOINT '{service.control}'\n" in fish
    assert "/it\\'s $odd/ca.pem'\n" in fish
    assert f"$env:ARM_ENDPOINT = '{service.control}'\n" in power
    assert "/it''s $odd/ca.pem'\n" in power


def test_from_elsewhere_the_bundle_is_made_in_the_users_configuration(
    service: ServiceProcess, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(service.ca.read_bytes())
    (tmp_path / "who.json").write_text(json.dumps(dict(service.operator)))
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CONFIG_HOME": str(tmp_path / "home")}
    words = ["--endpoint", service.control, "--ca", "ca.pem", "--credentials", "who.json"]

    done = subprocess.run(
        [sys.executable, "-m", "forewarn", "env", "--json", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        timeout=60,
    )

    told = json.loads(done.stdout)
    home = tmp_path / "home" / "forewarn" / "azure"
    assert Path(told["AZURE_CONFIG_DIR"]).is_relative_to(home)
    assert Path(told["REQUESTS_CA_BUNDLE"]).is_relative_to(home)
    assert Path(told["NODE_EXTRA_CA_CERTS"]) == tmp_path / "ca.pem"
    assert service.ca.read_bytes() in Path(told["REQUESTS_CA_BUNDLE"]).read_bytes()


def test_az_is_told_of_the_service_and_logged_in(service: ServiceProcess, az: Path) -> None:
    first = service.run("az-setup", "--az", str(az), "--name", "mine")
    again = service.run("az-setup", "--az", str(az), "--name", "mine")

    told = service.json("env")
    private = Path(told["AZURE_CONFIG_DIR"])
    commands = (private / "told").read_text().splitlines()
    quiet = "--only-show-errors --output none"
    endpoint = f"--name mine --endpoint-resource-manager {service.control} {quiet}"
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert commands[1] == f"cloud register {endpoint}"
    assert commands[2] == f"cloud set --name mine {quiet}"
    assert commands[3] == (
        f"login --service-principal --username {told['AZURE_CLIENT_ID']} --password=@- "
        f"--tenant {service.operator['tenant_id']} {quiet}"
    )
    assert commands[5] == f"cloud update {endpoint}"
    assert (private / "secret").read_text() == told["AZURE_CLIENT_SECRET"]
    assert told["AZURE_CLIENT_SECRET"] not in first.stdout + first.stderr
    surroundings = (private / "surroundings").read_text().splitlines()
    assert set(surroundings) == {f"0 {told['REQUESTS_CA_BUNDLE']}"}
    assert f'eval "$(forewarn env --data {service.data})"' in first.stdout


def test_what_az_complains_of_is_told(service: ServiceProcess, tmp_path: Path) -> None:
    sulking = program(tmp_path / "sulking", "#!/bin/sh\necho no >&2\necho way >&2\nexit 1\n")
    mute = program(tmp_path / "mute", "#!/bin/sh\nexit 3\n")
    broken = program(tmp_path / "broken", "#!/no/such/shell\n")

    refused = service.run("az-setup", "--az", str(sulking))
    assert refused.returncode == 6
    assert "`az cloud register` did not succeed: no way" in refused.stderr
    assert "status 3" in service.run("az-setup", "--az", str(mute)).stderr
    unusable = service.run("az-setup", "--az", str(broken))
    assert (unusable.returncode, "cannot be run" in unusable.stderr) == (2, True)


def test_where_there_is_no_az_one_is_told_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["az-setup", "--az", "/no/such/az"]) == 2
    assert "https://aka.ms/azure-cli" in capsys.readouterr().err

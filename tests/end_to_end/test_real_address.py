"""The real address and port, in a network namespace that the test makes and that ends with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.end_to_end

FLEET = """
[[scope]]
name = "alone"
enabled = "always"
  [[scope.machine]]
  name = "alone"
  address = "10.77.0.11"
"""

# Everything happens in a namespace of its own: nobody else's 169.254.169.254 is ever asked.
STORY = """
set -eu
ip link set lo up
ip address add 169.254.169.254/32 dev lo
ip address add 10.77.0.11/32 dev lo
ip address add 10.77.0.12/32 dev lo
"$PYTHON" -m forewarn serve --fleet "$FLEET" --data "$DATA" >"$DATA/out" 2>"$DATA/log" &
service=$!
trap 'kill $service; wait $service || true' EXIT
for _ in $(seq 100); do [ -s "$DATA/out" ] && break; sleep 0.1; done
URL='http://169.254.169.254/metadata/scheduledevents?api-version=2019-01-01'
curl -sS --noproxy '*' --interface 10.77.0.11 -H Metadata:true "$URL"
echo
curl -sS --noproxy '*' --interface 10.77.0.12 -H Metadata:true -o /dev/null -w '%{http_code}\\n' "$URL"
curl -sS --noproxy '*' --interface 10.77.0.11 -H Metadata:true \\
    'http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text'
"""


def test_the_endpoint_is_plain_http_at_its_real_address(tmp_path: Path) -> None:
    """Keeps S1: path, port 80, plain HTTP; a stranger on the link gets nothing."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)
    data = tmp_path / "data"
    data.mkdir()

    done = subprocess.run(
        ["/usr/bin/unshare", "--map-root-user", "--net", "bash", "-c", STORY],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": sys.executable,
             "PYTHONPATH": str(Path("src").resolve()), "FLEET": str(fleet), "DATA": str(data)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr + (data / "log").read_text()
    assert done.stdout.splitlines() == [
        '{"DocumentIncarnation":1,"Events":[]}',
        "403",
        "alone",
    ]

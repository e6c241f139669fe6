"""A cluster of PostgreSQL under Patroni, with its etcd, on VMs of a recipe; and somebody who writes to it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.recipes.machines import PATIENCE_SECONDS, Vm, status, wait_until

from forewarn.testing.processes import request

POSTGRES: Final = Path("/usr/lib/postgresql/15/bin")
# Root may not run PostgreSQL: Debian's packages bring somebody who may.
USER: Final = "postgres"
IS_ROOT: Final = os.geteuid() == 0
PATRONI: Final = """\
scope: shop
name: {name}
restapi:
  listen: {address}:8008
  connect_address: {address}:8008
  authentication:
    username: admin
    password: secret
etcd3:
  host: {etcd}:2379
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1048576
    postgresql:
      use_pg_rewind: true
  initdb:
    - encoding: UTF8
    - data-checksums
postgresql:
  listen: {address}:5432
  connect_address: {address}:5432
  data_dir: {home}/data
  bin_dir: {programs}
  pgpass: {home}/pgpass
  pg_hba:
    - host all all 127.0.0.0/8 trust
    - host replication all 127.0.0.0/8 trust
  authentication:
    superuser:
      username: postgres
    replication:
      username: replicator
  parameters:
    unix_socket_directories: ''
    shared_buffers: 16MB
"""


class Etcd(Vm):
    """Where the members agree on who leads."""

    def start_etcd(self) -> None:
        client, peer = f"http://{self.address}:2379", f"http://{self.address}:2380"
        words: list[str | Path] = [
            "etcd", "--name", "etcd", "--data-dir", self.path("var/lib/etcd"), "--unsafe-no-fsync",
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"etcd={peer}", "--log-level", "error",
        ]  # fmt: skip
        self.start(words, "etcd")
        wait_until(lambda: status(client, "/health") == 200, "etcd answers")


class DatabaseVm(Vm):
    """A VM with a member of the cluster."""

    def configure(self, etcd: str) -> None:
        """Write Patroni's file, and let its user own what it writes."""
        home = self.path("var/lib/postgresql")
        home.mkdir()
        text = PATRONI.format(
            name=self.name, address=self.address, etcd=etcd, home=home, programs=POSTGRES
        )
        self.path("etc/patroni.yml").write_text(text)
        if IS_ROOT:
            shutil.chown(home, USER, USER)

    def start_patroni(self) -> None:
        """Start its Patroni, which starts its PostgreSQL."""
        home = self.path("var/lib/postgresql")
        # PostgreSQL writes over its environment.
        self.pid_files = [home / "data" / "postmaster.pid"]
        self.start(
            ["/usr/bin/patroni", self.path("etc/patroni.yml")],
            "patroni",
            user=USER if IS_ROOT else None,
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"},
        )

    def start_member(self, etcd: str, path: str) -> None:
        """Join the cluster, or found it, and wait until Patroni says yes at a path."""
        self.configure(etcd)
        self.start_patroni()
        wait_until(lambda: self.is_so(path), f"{self.name} is well")

    def pause(self, *, is_paused: bool) -> None:
        """Have Patroni leave the cluster alone, or see to it again."""
        body = json.dumps({"pause": is_paused}).encode()
        headers = {"Authorization": f"Basic {base64.b64encode(b'admin:secret').decode()}"}
        answer = request(self._api, "PATCH", "/config", headers=headers, body=body)
        assert answer.status == 200
        wait_until(
            lambda: bool(request(self._api, "GET", "/patroni").json.get("pause")) is is_paused,
            "Patroni has noticed",
        )

    @property
    def _api(self) -> str:
        return f"http://{self.address}:8008"

    def is_so(self, path: str) -> bool:
        """Whether Patroni says yes there."""
        return status(self._api, path) == 200


class Writer:
    """Writes one row after the other to whichever member takes them, and notes which are safe."""

    def __init__(self, members: list[DatabaseVm]) -> None:
        hosts = ",".join(member.address for member in members)
        whom = f"host={hosts} user=postgres dbname=postgres connect_timeout=2"
        self._words = [
            *(str(POSTGRES / "psql"), "-XqtA", "-v", "ON_ERROR_STOP=1"),
            f"{whom} target_session_attrs=read-write",
        ]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.committed: list[int] = []
        self.troubles: list[str] = []

    def __enter__(self) -> Self:
        self.ask("CREATE TABLE orders (number int PRIMARY KEY)")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def ask(self, statement: str) -> str:
        """What the primary answers. Raises: subprocess.CalledProcessError."""
        return subprocess.run(
            [*self._words, "-c", statement],
            capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
        ).stdout  # fmt: skip

    def go_on(self, count: int) -> None:
        """Let so many more rows be committed."""
        enough = len(self.committed) + count
        wait_until(lambda: len(self.committed) >= enough, f"{enough} rows; {self.troubles[-1:]}")

    def _write(self) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                self.ask(f"INSERT INTO orders VALUES ({number})")
                self.committed.append(number)
            except subprocess.CalledProcessError as error:
                self.troubles.append(error.stderr)

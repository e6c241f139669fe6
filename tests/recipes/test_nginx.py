"""Draining nginx: the health URL first, then nobody new, and whoever is served gets all of it."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.recipes.machines import A_DAY, PATIENCE_SECONDS, Vm, status, wait_until
from tests.recipes.pages import Page

from forewarn.testing.scheduled_events import ScheduledEvents

pytestmark = [pytest.mark.recipes, pytest.mark.daemons("nginx")]

PAGE: Final = Page("nginx")
PORT: Final = 8080
# More than two sockets hold, so that nginx is not done before its reader is.
SIZE: Final = 32 * 1024 * 1024
CONFIG: Final = """\
pid {root}/run/nginx.pid;
error_log {root}/var/log/nginx-errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {root}/run/body;
    proxy_temp_path {root}/run/proxy;
    fastcgi_temp_path {root}/run/fastcgi;
    uwsgi_temp_path {root}/run/uwsgi;
    scgi_temp_path {root}/run/scgi;
    include {site};
}}
"""


class Nginx(Vm):
    """A VM with nginx, as the page has it, and a large file to fetch from it."""

    def set_up(self) -> None:
        site = self.write(
            "/etc/nginx/sites-enabled/default", PAGE.file("/etc/nginx/sites-enabled/default")
        )
        config = self.path("etc/nginx/nginx.conf")
        # Root's workers would be somebody else's, who may not look into every directory.
        user = (
            f"user {Path('/proc/self').owner()};\n" if Path("/proc/self").owner() == "root" else ""
        )
        config.write_text(user + CONFIG.format(root=self.root, site=site))
        self.command = f"nginx -c {config}"
        content = self.path("var/lib/www")
        content.mkdir()
        (content / "large").write_bytes(bytes(SIZE))
        self.write(
            "/etc/forewarn/nginx.env",
            PAGE.file("/etc/forewarn/nginx.env"),
            START=self.command,
            LEAVE_SECONDS="1",
            CUT_SECONDS="1",
        )
        self.type(PAGE.lines[0])
        self.start_nginx()

    def start_nginx(self) -> None:
        self.pid_files = [self.path("run/nginx.pid")]
        self.type(self.command)

    @property
    def health(self) -> int:
        """What the load balancer would be told; 0 if nobody answers."""
        return status(f"http://{self.address}:{PORT}", "/health")

    @contextmanager
    def download(self) -> Iterator[http.client.HTTPResponse]:
        """The large file, of which nothing was read yet."""
        line = http.client.HTTPConnection(self.address, PORT, PATIENCE_SECONDS)
        with closing(line):
            line.connect()
            line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            line.request("GET", "/large")
            with line.getresponse() as answer:
                yield answer

    def run_hook(self, phase: str, *, seconds: float = 30, attempt: int = 1) -> tuple[int, str]:
        with self.hook(f"{phase}/50-nginx", seconds=seconds, attempt=attempt) as hook:
            _, said = hook.communicate(timeout=2 * PATIENCE_SECONDS)
            return hook.returncode, said


@pytest.fixture
def vm(
    folder: Path, net: str, power: Callable[[Vm], None], scheduled_events: ScheduledEvents
) -> Nginx:
    vm = Nginx("web-0", folder, net=net, host=4, url=scheduled_events.url)
    power(vm)
    vm.set_up()
    assert vm.health == 200
    return vm


def test_whoever_is_served_gets_all_of_it_before_the_reboot(
    vm: Nginx, scheduled_events: ScheduledEvents
) -> None:
    vm.install(PAGE)
    vm.start_agent()

    with vm.download() as answer:
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: vm.health == 503, "load balancers are told to leave")
        wait_until(lambda: vm.health == 0, "nobody new is served")
        is_early = event.approved
        content = answer.read()
        wait_until(lambda: event.started, "the agent approves")
    vm.power_off()
    vm.path("run/nginx-draining").unlink()
    vm.start_nginx()
    vm.start_agent()
    scheduled_events.advance_to_next()
    wait_until(lambda: "undo" in vm.log("agent"), "the agent undoes")

    assert (len(content), is_early, event.completed) == (SIZE, False, True)
    assert vm.health == 200


def test_an_event_that_is_called_off_has_nginx_serve_again(
    vm: Nginx, scheduled_events: ScheduledEvents
) -> None:
    vm.install(PAGE)
    vm.start_agent()

    with vm.download():
        event = scheduled_events.reboot("web-0")
        wait_until(lambda: vm.health == 0, "nobody new is served")
        scheduled_events.cancel(event)
        wait_until(lambda: vm.health == 200, "nginx serves again")

    assert not event.approved


def test_an_event_that_is_called_off_early_costs_nobody_anything(vm: Nginx) -> None:
    with vm.download() as answer, vm.hook("prepare/50-nginx", seconds=A_DAY) as hook:
        wait_until(lambda: vm.health == 503, "load balancers are told to leave")
        hook.kill()
        hook.communicate(timeout=PATIENCE_SECONDS)
        undone, _ = vm.run_hook("undo")
        content = answer.read()

    assert (undone, vm.health, len(content)) == (0, 200, SIZE)


def test_who_takes_too_long_is_told_of(vm: Nginx) -> None:
    with vm.download():
        ended, said = vm.run_hook("prepare", seconds=4)

    assert ended == 1
    assert "is still serving: somebody takes longer than there is time" in said


def test_a_hook_that_is_asked_to_end_says_what_is_not_done(vm: Nginx) -> None:
    with vm.download(), vm.hook("prepare/50-nginx", seconds=A_DAY) as hook:
        wait_until(lambda: vm.health == 0, "nobody new is served")
        hook.terminate()
        _, said = hook.communicate(timeout=PATIENCE_SECONDS)

    assert (hook.returncode, "is still serving" in said) == (1, True)


def test_a_hook_that_is_run_twice_does_the_same(vm: Nginx) -> None:
    statuses = [
        vm.run_hook("prepare")[0],
        vm.run_hook("prepare", attempt=2)[0],
        vm.run_hook("undo")[0],
        vm.run_hook("undo")[0],
    ]

    assert statuses == [0, 0, 0, 70]
    assert vm.health == 200


def test_where_nginx_does_not_run_there_is_nothing_to_do(vm: Nginx) -> None:
    vm.power_off()

    assert vm.run_hook("prepare") == (70, "")


def test_what_is_left_out_is_as_the_page_has_it(vm: Nginx) -> None:
    lines = PAGE.file("/etc/forewarn/nginx.env").splitlines()[1:]
    told = dict(line.partition("#")[0].strip().replace('"', "").split("=", 1) for line in lines)
    vm.path("etc/forewarn/nginx.env").write_text("trap set EXIT\n")
    started = vm.path("etc/forewarn/hooks.d/started/50-nginx")
    started.parent.mkdir()
    started.symlink_to("../undo/50-nginx")

    with vm.hook("started/50-nginx", seconds=A_DAY) as hook:
        usual, _ = hook.communicate(timeout=PATIENCE_SECONDS)

    assert hook.returncode == 70
    assert told.items() <= dict(re.findall(r"(?m)^(\w+)='(.*)'$", usual)).items()

"""The serve loop: sockets, signals and threads around an assembled service."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import uvloop

from forewarn.clocks import SystemClock
from forewarn.config.fleets import FleetFile, load_fleet, parse_fleet
from forewarn.core.journal import SERVICE, Actor
from forewarn.core.scopes import Origin
from forewarn.errors import Damaged, ForewarnError, Refused
from forewarn.fabrics.simulated import SimulatedFabric
from forewarn.hooks.sender import HttpPost
from forewarn.identities.addresses import AddressBook
from forewarn.ports.clock import Clock
from forewarn.ports.fabric import Fabric
from forewarn.ports.store import Store
from forewarn.service.books import Writers
from forewarn.web import listeners
from forewarn.web.app import ControlServer, build_app
from forewarn.web.arm_calls import ArmParts
from forewarn.web.control import ControlParts
from forewarn.web.counters import Counters
from forewarn.web.emulator import Time
from forewarn.web.faults import Faults
from forewarn.web.listeners import Bound
from forewarn.web.server import MetadataServer
from forewarn.wiring import simulating
from forewarn.wiring.assembly import Assembly, assemble
from forewarn.wiring.carrying import Carriers, assemble_hooks
from forewarn.wiring.faces import Faces
from forewarn.wiring.garbage import uncollected
from forewarn.wiring.grounds import Entrance, Footing, RealGround, keep_trust
from forewarn.wiring.hosting import Hosting, Threads, open_hosting, warn_without_hosts
from forewarn.wiring.lanes import Lanes
from forewarn.wiring.linking import Links, load_links, warn_of_strangers
from forewarn.wiring.renewal import GRACE, Renewal, tell_guests
from forewarn.wiring.running import Running, Switchboard
from forewarn.wiring.settings import ServeSettings, Serving
from forewarn.wiring.sockets import allow_descriptors, listening
from forewarn.wiring.watching import WatchedStore
from forewarn.wiring.working import Workers

PUBLISH_AGAIN_SECONDS: Final = 1.0


def serve(
    settings: ServeSettings,
    log: logging.Logger,
    on_ready: Callable[[Serving], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT. `on_ready` is called in a thread of its own.

    Raises: Malformed, Refused, Unavailable if it cannot start; Refused if a worker crashed.
    """
    allow_descriptors()
    uvloop.run(_Serve(settings, log).run(on_ready))


class _Serve:
    """One run of the service, from its settings to its end."""

    def __init__(self, settings: ServeSettings, log: logging.Logger) -> None:
        self._settings = settings
        self._log = log
        self._parse = partial(parse_fleet, default_enabling=settings.default_enabling)
        self._stop = asyncio.Event()
        self._crashed = False
        self._state = "starting"
        self._unpublished: str | None = None
        self._fleet_trouble: str | None = None
        self._renewal: Renewal | None = None
        self._hosting: Hosting | None = None
        self._ground = settings.ground or RealGround(settings.data, settings.trust)

    async def run(self, on_ready: Callable[[Serving], None]) -> None:
        settings = self._settings
        settings.data.prepare()
        fleet = self._read_fleet()
        networks = load_links(settings.networks, settings.metadata)
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            # Addresses first: who cannot listen need not read a database.
            bound = listeners.bind(settings.metadata)
            for place in bound:
                stack.callback(place.socket.close)
            control_socket = stack.enter_context(listening(*settings.control))
            entrance = self._ground.entrance(settings.control[0])
            board = Switchboard(await self._begin(bound, fleet, None))
            stack.callback(board.end)
            self._renewal = Renewal(board, partial(self._begin, bound, fleet), bound, loop)
            control_server = ControlServer(
                build_app(board, board), control_socket, entrance.context
            )
            await board.running.open(self._renewal.places if self._ground.is_renewable else bound)
            links = Links(networks, board.running, self._log)
            stack.callback(links.close)
            links.open()
            serving_control = asyncio.create_task(control_server.serve())
            self._watch_signals(loop, board, links)
            address = entrance.url(control_socket.getsockname()[1])
            places = (*bound, *links.places)
            self._publish(loop, entrance, address, list(dict.fromkeys(one.url for one in places)))
            stack.callback(settings.data.unpublish)
            self._tell("serving", control=address)
            warn_of_strangers(board.running.assembly.identities, bound, self._log)
            settings.systemd.ready()
            stack.callback(
                asyncio.create_task(keep_trust(entrance, board.running.door, self._log)).cancel
            )
            serving = Serving(board.running.assembly, places, address, settings.data)
            try:
                await asyncio.to_thread(on_ready, serving)
                await self._stop.wait()
            finally:
                self._tell("stopping")
                settings.systemd.stopping()
                links.close()
                await board.running.guests.stop(GRACE)
                control_server.stop()
                await serving_control
        if self._crashed:
            raise Refused(
                "a worker crashed, see the log; nothing acknowledged is lost: start again"
            )
        self._tell("stopped")

    async def _begin(self, bound: Sequence[Bound], fleet: FleetFile, seed: int | None) -> Running:
        """Put a run together over a new footing. Nobody is answered yet."""
        ground, loop = self._ground, asyncio.get_running_loop()
        with ExitStack() as stack:
            footing = ground.footing(stack, seed)
            store = WatchedStore(footing.store)
            crash = partial(loop.call_soon_threadsafe, self._crash)
            with self._damage_is_final():
                fabric = self._fabric(footing.clock, crash, stack)
                assembly = self._assemble(footing, store, bound, fleet, fabric)
                await asyncio.to_thread(self._load, assembly, fleet)
                door = await asyncio.to_thread(ground.door, assembly, fleet.subscription_id)
            workers = Workers(assembly, store, self._log, crash, footing.speed)
            carriers = self._carriers(assembly, fleet, crash, footing.faults)
            counters = Counters()
            guests = self._guests(assembly, fleet, counters, footing)
            look = partial(tell_guests, loop, guests)
            emulator = ground.emulator(footing, assembly, workers, look, self._reset, bound)
            faces = Faces(
                control=self._parts(assembly, footing, counters, workers, carriers),
                principals=door.principals(carriers.hooks.webhooks.pause_all_of),
                logins=door.logins,
                webhooks=carriers.hooks.parts,
                arm=self._arm(assembly, fleet, door.tenant),
                emulator=emulator,
            )
            return Running(
                assembly=assembly,
                workers=workers,
                carriers=carriers,
                guests=guests,
                door=door,
                table=faces.table(),
                emulator=emulator,
                stack=stack.pop_all(),
            )

    def _fabric(self, clock: Clock, crash: Callable[[], object], stack: ExitStack) -> Fabric:
        settings, log = self._settings, self._log
        if not settings.libvirt.hosts:
            return SimulatedFabric(clock, takes=settings.impacts_take)
        threads, enabling = Threads(log, crash), settings.default_enabling
        hosting = open_hosting(settings.libvirt, settings.data, clock, enabling, threads, log)
        stack.callback(hosting.stop)
        self._hosting = hosting
        return hosting.fabric

    def _assemble(
        self,
        footing: Footing,
        store: Store,
        bound: Sequence[Bound],
        fleet: FleetFile,
        fabric: Fabric,
    ) -> Assembly:
        book = AddressBook()
        for place in bound:
            if place.machine is not None:
                book.pin(place.name, place.machine)
        return assemble(
            clock=footing.clock,
            ids=footing.ids,
            store=store,
            fabric=fabric,
            identities=book,
            rules=fleet.periods,
            turn=threading.RLock(),
            lane=Lanes(),
            declaring=threading.Lock(),
            # The file is held by one process at a time.
            writers=Writers.ONE,
        )

    @contextmanager
    def _damage_is_final(self) -> Iterator[None]:
        """Nobody should start the service again and again until damage passes."""
        try:
            yield
        except Damaged as error:
            file = str(self._settings.data.database)
            raise Refused(f"{error}" if file in str(error) else f"{file}: {error}") from error

    def _load(self, assembly: Assembly, fleet: FleetFile) -> None:
        with uncollected():
            scopes = assembly.load()
            self._log.info("the store is read", extra={"action": "loaded", "scopes": scopes})
            if self._hosting is not None:
                self._hosting.begin(assembly.drains.is_drained)
            else:
                warn_without_hosts(assembly, self._log)
            if self._settings.fleet is not None:
                self._apply_first(assembly, fleet)
            if self._hosting is not None:
                self._hosting.follow(assembly)

    def _apply_first(self, assembly: Assembly, fleet: FleetFile) -> None:
        try:
            self._apply(assembly, fleet, SERVICE)
        except Refused as error:
            # What was stored can still be served; and whatever is in the way, such as an
            # open event, can only be seen to while the service runs.
            self._fleet_trouble = f"the fleet file is not in force: {error}"
            self._log.error(self._fleet_trouble, extra={"action": "fleet_refused"})

    def _carriers(
        self,
        assembly: Assembly,
        fleet: FleetFile,
        crash: Callable[[], object],
        faults: Faults | None,
    ) -> Carriers:
        # Receivers answer in real time, whatever the service's own clock does.
        post = HttpPost(SystemClock(), self._settings.webhook_allow)
        hooks = assemble_hooks(assembly, post, fleet.subscription_id)
        return Carriers(hooks, assembly, self._log, crash, faults)

    def _guests(
        self, assembly: Assembly, fleet: FleetFile, counters: Counters, footing: Footing
    ) -> MetadataServer:
        return MetadataServer(
            assembly.desk,
            assembly.identities,
            assembly.board,
            limits=self._settings.limits,
            counters=counters,
            clock=assembly.clock,
            subscription_id=fleet.subscription_id,
            log=self._log,
            manners=self._settings.manners,
            visitors=footing.visitors,
            faults=footing.faults,
        )

    def _parts(
        self,
        assembly: Assembly,
        footing: Footing,
        counters: Counters,
        workers: Workers,
        carriers: Carriers,
    ) -> ControlParts:
        return ControlParts(
            clock=assembly.clock,
            books=assembly.books,
            desk=assembly.desk,
            journals=assembly.journals,
            operations=assembly.operations,
            drains=assembly.drains,
            metal=None if self._hosting is None else self._hosting.fabric,
            apply_fleet=lambda text, name, actor: self._apply(
                assembly, self._parse(text, name), actor
            ),
            reload_fleet=partial(self._reload, assembly),
            backup=footing.backup,
            ready=lambda: self._unready(workers),
            counters=counters,
            setbacks=lambda: workers.setbacks_total,
            hooks=carriers.hooks.counts,
            behave=partial(simulating.behave, assembly) if self._hosting is None else None,
            take=partial(simulating.take, assembly) if self._hosting is None else None,
        )

    def _arm(self, assembly: Assembly, fleet: FleetFile, tenant: str) -> ArmParts:
        return ArmParts(
            desk=assembly.desk,
            registrar=assembly.registrar,
            operations=assembly.operations,
            subscription_id=fleet.subscription_id,
            tenant_id=tenant,
            enabling=self._settings.default_enabling,
        )

    def _tell(self, state: str, **details: str) -> None:
        self._state = state
        self._log.info(state, extra={"action": state, **details})

    def _watch_signals(
        self, loop: asyncio.AbstractEventLoop, board: Switchboard, links: Links
    ) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

        def reload() -> None:
            links.reload()
            loop.run_in_executor(None, self._reload_and_log, board.running.assembly)

        if not self._ground.ends_with_its_terminal:
            loop.add_signal_handler(signal.SIGHUP, reload)
        elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            # Ignored means: started by nohup.
            loop.add_signal_handler(signal.SIGHUP, self._stop.set)

    def _reset(self, seed: int | None) -> Time:
        """Begin another run in the place of this one; called from any thread but the loop's."""
        assert self._renewal is not None, "nobody calls before there is a run"
        return self._renewal.begin_anew(seed)

    def _publish(
        self, loop: asyncio.AbstractEventLoop, entrance: Entrance, control: str, metadata: list[str]
    ) -> None:
        """Say where we are to be found; a disk that cannot be written keeps no guest waiting."""
        if self._stop.is_set():
            return
        try:
            self._settings.data.publish(control, metadata, entrance.trusted)
            self._unpublished = None
        except ForewarnError as error:
            if self._unpublished is None:
                self._log.warning(str(error), extra={"action": "unpublished"})
            self._unpublished = str(error)
            loop.call_later(PUBLISH_AGAIN_SECONDS, self._publish, loop, entrance, control, metadata)

    def _crash(self) -> None:
        self._crashed = True
        self._stop.set()

    def _unready(self, workers: Workers) -> str | None:
        if self._state != "serving":
            return f"the service is {self._state}"
        hosts = None if self._hosting is None else self._hosting.trouble
        return self._fleet_trouble or workers.trouble or hosts or self._unpublished

    def _read_fleet(self) -> FleetFile:
        settings = self._settings
        if settings.fleet is None:
            return self._parse("", "no fleet file")
        return load_fleet(settings.fleet, settings.default_enabling)

    def _apply(self, assembly: Assembly, fleet: FleetFile, actor: Actor) -> tuple[str, ...]:
        if not fleet.declarations and assembly.directory.has_machines:
            raise Refused(
                "the fleet file declares nothing, and all VMs would be gone: was it cut off? "
                "Leave at least one scope in it"
            )
        declared, hosting = fleet.declarations, self._hosting
        if hosting is not None:
            declared = hosting.completed(declared)
        changes = assembly.registrar.apply(declared, Origin.FILE, actor)
        if hosting is not None:
            hosting.keep(fleet.declarations)
        self._fleet_trouble = None
        if fleet.periods != assembly.rules:
            changes = (*changes, "[periods] changed: restart the service to use them")
        for change in changes or ("the fleet file is in force, nothing changed",):
            self._log.info(change, extra={"action": "fleet"})
        return changes

    def _reload(self, assembly: Assembly, actor: Actor) -> tuple[str, ...]:
        if self._settings.fleet is None:
            raise Refused(
                "the service was started without --fleet: name a file, `forewarn fleet apply FILE`"
            )
        return self._apply(assembly, self._read_fleet(), actor)

    def _reload_and_log(self, assembly: Assembly) -> None:
        """SIGHUP: a file with errors changes nothing, and beside links one is not missed."""
        self._settings.systemd.reloading(int(assembly.clock.elapsed() / timedelta(microseconds=1)))
        try:
            if self._settings.fleet is not None or not self._settings.networks:
                self._reload(assembly, SERVICE)
        except ForewarnError as error:
            self._log.error(str(error), extra={"action": "reload_refused"})
        self._settings.systemd.ready()

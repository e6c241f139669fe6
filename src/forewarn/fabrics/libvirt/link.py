"""Link: the connection to one host's libvirt, and every call that is made over it.

Law: nobody else imports libvirt. Whatever it raises leaves here as Unavailable, if the host could not
be reached, or as Refused, with libvirt's own words, if it could. Any call may take its time; one over
a connection that died ends when keep-alives have been missed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import libvirt

from forewarn.core.names import HostName
from forewarn.errors import Malformed, Refused, Unavailable
from forewarn.fabrics.libvirt.descriptions import Description, Nic, as_new, describe
from forewarn.fabrics.libvirt.surveys import Resident, Sight, State, Survey

KEEPALIVE_SECONDS: Final = 5
KEEPALIVES_MISSED_MAX: Final = 3
# How often the loop of callbacks looks whether it is to end.
TICK_MILLISECONDS: Final = 200

_STATES: Final = {
    libvirt.VIR_DOMAIN_PAUSED: State.PAUSED,
    libvirt.VIR_DOMAIN_SHUTOFF: State.OFF,
    libvirt.VIR_DOMAIN_CRASHED: State.OFF,
}
_UNDEFINE: Final = (
    libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
    | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
    | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
)
_MIGRATE: Final = libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_PEER2PEER
_RECREATABLE: Final = libvirt.VIR_DOMAIN_XML_SECURE

# libvirt has one loop of callbacks in a process, however many fabrics there are.
_looping: Final = threading.Lock()


@cache
def _prepare() -> None:
    """Once in a process, and before anything is opened."""
    # Errors are raised; libvirt would print them as well.
    libvirt.registerErrorHandler(lambda *_: None, None)
    libvirt.virEventRegisterDefaultImpl()
    libvirt.virEventAddTimeout(TICK_MILLISECONDS, lambda *_: None, None)


def run_callbacks(stopping: threading.Event) -> None:
    """Pass on what hosts tell, until told to stop. Without it, connections die unnoticed."""
    _prepare()
    while not stopping.is_set():
        if not _looping.acquire(timeout=TICK_MILLISECONDS / 1000):
            continue
        try:
            while not stopping.is_set():
                libvirt.virEventRunDefaultImpl()
        finally:
            _looping.release()


class Link:
    """One host, by its libvirt URI. Connected by one thread, and used by any."""

    def __init__(
        self,
        uri: str,
        name: str = "",
        *,
        open_connection: Callable[[str], Any] | None = None,
    ) -> None:
        """Over `open_connection`, for somebody who has a connection already; else libvirt's own."""
        _prepare()
        self.uri = uri
        # What the host calls itself, unless it was given a name; a URI until it was asked.
        self.host = HostName(name or uri)
        self._is_named = bool(name)
        self._open = open_connection or libvirt.open
        # Replaced whole by the thread that connects.
        self._connection: Any = None
        self._listening = -1
        self._storing = threading.Lock()
        # Something happened there, or the connection broke: look again.
        self.stirred = threading.Event()

    @property
    def is_known_elsewhere(self) -> bool:
        """Whether its URI leads other hosts here too, and not to themselves."""
        parts = urlsplit(self.uri)
        return bool(parts.netloc) or "socket=" in parts.query

    def connect(self) -> None:
        """Connect, unless connected; returns when the host can be asked. Raises: Unavailable."""
        if self._connection is not None and self._is_alive():
            return
        self.close()
        with self._translating():
            connection = self._open(self.uri)
            # Drivers within this process have nobody to keep alive.
            with suppress(libvirt.libvirtError):
                connection.setKeepAlive(KEEPALIVE_SECONDS, KEEPALIVES_MISSED_MAX)
            with suppress(libvirt.libvirtError):
                connection.registerCloseCallback(lambda *_: self.stirred.set(), None)
            self._listening = connection.domainEventRegisterAny(
                None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, lambda *_: self.stirred.set(), None
            )
            if not self._is_named:
                self.host = HostName(connection.getHostname())
                self._is_named = True
            self._connection = connection

    def survey(self) -> Survey:
        """All that is on the host now. Raises: Unavailable, Refused."""
        with self._reaching() as connection:
            residents: list[Resident] = []
            unread: list[str] = []
            for domain in connection.listAllDomains():
                try:
                    residents.append(self._resident(connection, domain))
                except Malformed as error:
                    unread.append(f"{domain.name()} on {self.host} is left out: {error}")
                except libvirt.libvirtError as error:
                    # It may be gone since it was listed.
                    if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                        raise
            return Survey(
                host=self.host,
                kind=connection.getType(),
                memory_free_kib=_memory_free_kib(connection, residents),
                residents=tuple(sorted(residents, key=lambda one: one.description.uuid)),
                unread=tuple(unread),
            )

    def sight(self, uuid: str) -> Sight | None:
        """The domain as it is now; None if the host does not know it. Raises: Unavailable."""
        with self._reaching() as connection:
            domain = _found(connection, uuid)
            return None if domain is None else _sight(domain)

    def suspend(self, uuid: str) -> None:
        with self._domain(uuid) as domain:
            domain.suspend()

    def resume(self, uuid: str) -> None:
        with self._domain(uuid) as domain:
            domain.resume()

    def ask_to_stop(self, uuid: str) -> None:
        """Press the power button; whether the guest minds is another matter."""
        with self._domain(uuid) as domain:
            try:
                domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            except libvirt.libvirtError as error:
                # A driver that has one way only.
                if error.get_error_code() != libvirt.VIR_ERR_INVALID_ARG:
                    raise
                domain.shutdown()

    def destroy(self, uuid: str) -> None:
        """Pull the plug."""
        with self._domain(uuid) as domain:
            domain.destroy()

    def start(self, uuid: str) -> None:
        with self._domain(uuid) as domain:
            domain.create()

    def create(self, xml: str) -> None:
        """Start a domain that the host forgets once it is off."""
        with self._reaching() as connection:
            connection.createXML(xml)

    def define(self, xml: str) -> None:
        with self._reaching() as connection:
            connection.defineXML(xml)

    def start_with_host(self, uuid: str) -> None:
        """Have a domain started whenever its host comes up."""
        with self._domain(uuid) as domain:
            domain.setAutostart(1)

    def undefine(self, description: Description, *, keep_nvram: bool) -> None:
        """Let the host forget a domain that is off; what it was saved in goes with it."""
        flags = _UNDEFINE
        if description.has_nvram:
            flags |= (
                libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM
                if keep_nvram
                else libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
            )
        # What libvirt before 8.9 does not know it keeps.
        tpm = "VIR_DOMAIN_UNDEFINE_KEEP_TPM" if keep_nvram else "VIR_DOMAIN_UNDEFINE_TPM"
        flags |= getattr(libvirt, tpm, 0)
        with self._domain(description.uuid) as domain:
            try:
                domain.undefineFlags(flags)
            except libvirt.libvirtError as error:
                if error.get_error_code() != libvirt.VIR_ERR_INVALID_ARG:
                    raise
                domain.undefine()

    def is_migrating(self, uuid: str) -> bool:
        """Whether somebody began something long with the domain that is not over."""
        with self._domain(uuid) as domain:
            kind = domain.jobInfo()[0]
            return bool(kind in (libvirt.VIR_DOMAIN_JOB_BOUNDED, libvirt.VIR_DOMAIN_JOB_UNBOUNDED))

    def migrate(self, uuid: str, target: Link, *, is_persistent: bool) -> None:
        """Move a running domain; returns when it runs there.

        The hosts do it between themselves, so that our end would not be the end of it.
        """
        flags = _MIGRATE
        if is_persistent:
            flags |= libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        with self._domain(uuid) as domain:
            domain.migrateToURI3(target.uri, {}, flags)

    def volume_xml(self, path: str) -> str | None:
        """How to make the file under a disk anew; None if there is none."""
        with self._pool_of(path) as pool:
            volume = _volume(pool, path)
            return None if volume is None else as_new(volume.XMLDesc())

    def discard(self, path: str) -> None:
        """Delete the file under a disk, if it is there."""
        with self._pool_of(path) as pool:
            volume = _volume(pool, path)
            if volume is not None:
                volume.delete()

    def renew(self, path: str, volume_xml: str) -> None:
        """Make the file under a disk, as it was when new."""
        with self._pool_of(path) as pool:
            volume = _volume(pool, path)
            if volume is not None:
                volume.delete()
            pool.createXML(volume_xml)

    def fill(self, path: str, volume_xml: str) -> None:
        """Make the file under a disk, unless it is there."""
        with self._pool_of(path) as pool:
            if _volume(pool, path) is None:
                pool.createXML(volume_xml)

    def close(self) -> None:
        """Let go of the host: libvirt closes what nobody holds, and callbacks hold."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(libvirt.libvirtError):
                connection.unregisterCloseCallback()
            with suppress(libvirt.libvirtError):
                connection.domainEventDeregisterAny(self._listening)

    def _is_alive(self) -> bool:
        try:
            return self._connection is not None and self._connection.isAlive() == 1
        except libvirt.libvirtError:
            return False

    @contextmanager
    def _reaching(self) -> Iterator[Any]:
        """The connection there is. Raises: Unavailable, Refused."""
        connection = self._connection
        if connection is None:
            raise Unavailable(f"host {self.host} is not connected: it is being tried")
        with self._translating():
            yield connection

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except libvirt.libvirtError as error:
            if error.get_error_domain() == libvirt.VIR_FROM_RPC or not self._is_alive():
                self.stirred.set()
                raise Unavailable(
                    f"host {self.host} cannot be reached: {error}: see that libvirt runs there, that "
                    f"this user may use it, and that {self.uri} is right; it is tried again"
                ) from error
            raise Refused(f"{error} (libvirt on {self.host})") from error

    @contextmanager
    def _domain(self, uuid: str) -> Iterator[Any]:
        with self._reaching() as connection:
            yield connection.lookupByUUIDString(uuid)

    @contextmanager
    def _pool_of(self, path: str) -> Iterator[Any]:
        # Two who made a pool of one directory would be in each other's way.
        with self._storing, self._reaching() as connection, _pool_of(connection, path) as pool:
            yield pool

    def _resident(self, connection: Any, domain: Any) -> Resident:  # noqa: ANN401
        sight = _sight(domain)
        inactive = libvirt.VIR_DOMAIN_XML_INACTIVE if sight.is_persistent else 0
        xml = domain.XMLDesc(_RECREATABLE | inactive)
        description = describe(xml)
        if sight.state is not State.OFF:
            nics = tuple(_leased(connection, nic) for nic in description.nics)
            description = replace(description, nics=nics)
        starts_with_host = sight.is_persistent and domain.autostart() == 1
        return Resident(description, sight, xml, starts_with_host)


def _sight(domain: Any) -> Sight:  # noqa: ANN401
    said = domain.state()[0]
    state = _STATES.get(said, State.RUNNING)
    if said == libvirt.VIR_DOMAIN_CRASHED and domain.isActive() == 1:
        # Kept by <on_crash>preserve</on_crash> for somebody to look at: it has its memory and disks.
        state = State.PAUSED
    number = domain.ID() if state is not State.OFF else None
    return Sight(state, number, domain.isPersistent() == 1)


def _found(connection: Any, uuid: str) -> Any:  # noqa: ANN401
    try:
        return connection.lookupByUUIDString(uuid)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            return None
        raise


def _leased(connection: Any, nic: Nic) -> Nic:  # noqa: ANN401
    """With the address that libvirt's own DHCP server gave out, if nothing else is known.

    Never what the guest says of itself: an address tells who is calling.
    """
    if nic.addresses or not nic.network:
        return nic
    try:
        leases = connection.networkLookupByName(nic.network).DHCPLeases(nic.mac)
    except libvirt.libvirtError:
        # No such network, or a driver without leases.
        return nic
    return replace(nic, addresses=tuple(lease["ipaddr"] for lease in leases), is_leased=True)


def _memory_free_kib(connection: Any, residents: list[Resident]) -> int:  # noqa: ANN401
    try:
        stats = connection.getMemoryStats(libvirt.VIR_NODE_MEMORY_STATS_ALL_CELLS)
        return int(sum(stats.get(member, 0) for member in ("free", "buffers", "cached")))
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_SUPPORT:
            raise
    taken = sum(r.description.memory_kib for r in residents if r.is_active)
    return int(connection.getInfo()[1]) * 1024 - taken


@contextmanager
def _pool_of(connection: Any, path: str) -> Iterator[Any]:  # noqa: ANN401
    """The pool of the directory that a file is in; where none is at work, one is for the moment."""
    directory = escape(path.rpartition("/")[0])
    pools = connection.listAllStoragePools()
    pool = next((one for one in pools if f"<path>{directory}</path>" in one.XMLDesc()), None)
    if pool is not None and pool.isActive() == 1:
        # Files come and go without libvirt's knowing.
        pool.refresh()
        yield pool
        return
    if pool is not None:
        # libvirt has no two of one directory, though one of them rests.
        pool.create()
    else:
        name = f"forewarn{directory.replace('/', '-')}"
        pool = connection.storagePoolCreateXML(
            f"<pool type='dir'><name>{name}</name><target><path>{directory}</path></target></pool>"
        )
    try:
        yield pool
    finally:
        with suppress(libvirt.libvirtError):
            pool.destroy()


def _volume(pool: Any, path: str) -> Any:  # noqa: ANN401
    try:
        return pool.storageVolLookupByName(path.rpartition("/")[2])
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_STORAGE_VOL:
            return None
        raise

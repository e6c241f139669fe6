"""What a domain's XML says of a machine: memory, disks, interfaces, and what we keep in its metadata.

Our element lies in the domain's metadata under a namespace of its own, and every part of it may be
left out:

    <forewarn:machine xmlns:forewarn="urn:forewarn:libvirt:1" scope="web" group="rg1" …>
      <forewarn:tag name="tier" value="front"/>
      <forewarn:address mac="52:54:00:00:00:01" ip="10.77.0.11"/>
      <forewarn:ephemeral disk="vdb"/>
    </forewarn:machine>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final
from xml.etree import ElementTree as ET

from forewarn.errors import Malformed

NAMESPACE: Final = "urn:forewarn:libvirt:1"
_OURS: Final = f"{{{NAMESPACE}}}"
_PARTS: Final = ("address", "ephemeral", "tag")


class Lull(Enum):
    """How a machine is frozen."""

    PAUSE = "pause"
    MIGRATE = "migrate"


@dataclass(frozen=True, slots=True)
class Disk:
    """A file under a machine's disk."""

    target: str
    path: str


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface, with the addresses that the host's side vouches for."""

    mac: str
    addresses: tuple[str, ...] = ()
    # The name of libvirt's network, whose leases may tell more.
    network: str = ""
    # Whether they are from there: a guest may have asked for them.
    is_leased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A domain, as its XML has it."""

    uuid: str
    name: str
    memory_kib: int
    disks: tuple[Disk, ...] = ()
    # Those of the disks that a machine loses when it moves or goes.
    ephemeral: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    lull: Lull = Lull.PAUSE
    has_nvram: bool = False
    # The attributes of our element; None: the domain has none.
    said: Mapping[str, str] | None = None
    tags: tuple[tuple[str, str], ...] = ()


def describe(xml: str) -> Description:
    """A domain's description from its XML. Raises: Malformed."""
    try:
        # What libvirt hands out it has parsed and written itself.
        root = ET.fromstring(xml)  # noqa: S314
    except ET.ParseError as error:
        raise Malformed(f"a domain's XML cannot be read: {error}") from error
    ours = root.find(f"metadata/{_OURS}machine")
    disks = tuple(_disks(root))
    told = _told(ours)
    nics = tuple(_nic(element, told) for element in root.iterfind("devices/interface"))
    _refuse_strangers(ours, told, nics)
    return Description(
        uuid=root.findtext("uuid", ""),
        name=root.findtext("name", ""),
        memory_kib=int(root.findtext("memory", "0")),
        disks=disks,
        ephemeral=_ephemeral(ours, disks),
        nics=nics,
        lull=_lull(ours),
        has_nvram=root.find("os/nvram") is not None or _boots_by_uefi(root),
        said=None if ours is None else dict(ours.attrib),
        tags=() if ours is None else tuple(_tags(ours)),
    )


def as_new(volume_xml: str) -> str:
    """What makes a volume like the given one, with nothing in it. Raises: Malformed."""
    found = ET.fromstring(volume_xml)  # noqa: S314 - as above
    fresh = ET.Element("volume")
    for member in ("name", "capacity", "backingStore"):
        fresh.extend(found.iterfind(member))
    # As much of the disk as it comes to hold, and no more.
    ET.SubElement(fresh, "allocation").text = "0"
    target = ET.SubElement(fresh, "target")
    for member in ("target/format", "target/permissions"):
        target.extend(found.iterfind(member))
    return ET.tostring(fresh, encoding="unicode")


def _boots_by_uefi(root: ET.Element) -> bool:
    os = root.find("os")
    return os is not None and os.get("firmware") == "efi"


def _disks(root: ET.Element) -> list[Disk]:
    disks: list[Disk] = []
    for element in root.iterfind("devices/disk"):
        source, target = element.find("source"), element.find("target")
        if source is None or target is None or element.get("type") != "file":
            continue
        disks.append(Disk(target.get("dev", ""), source.get("file", "")))
    return disks


def _ephemeral(ours: ET.Element | None, disks: tuple[Disk, ...]) -> tuple[Disk, ...]:
    if ours is None:
        return ()
    named = [element.get("disk", "") for element in ours.iterfind(f"{_OURS}ephemeral")]
    known = {disk.target: disk for disk in disks}
    unknown = [name for name in named if name not in known]
    if unknown:
        raise Malformed(
            f'its metadata calls disk "{unknown[0]}" ephemeral, but no disk backed by a file has '
            "that target: correct the metadata"
        )
    return tuple(known[name] for name in named)


def _refuse_strangers(
    ours: ET.Element | None, told: Mapping[str, tuple[str, ...]], nics: tuple[Nic, ...]
) -> None:
    """Refuse what would be passed over in silence: a word we do not know, a card that is not there."""
    for element in () if ours is None else ours:
        word = element.tag.removeprefix(_OURS)
        if word not in _PARTS:
            raise Malformed(
                f"its metadata has a <{word}>, which means nothing here: one of {', '.join(_PARTS)}"
            )
    unknown = sorted(told.keys() - {nic.mac for nic in nics})
    if unknown:
        raise Malformed(
            f'its metadata gives an address to the card "{unknown[0]}", and no interface has that MAC: '
            "correct the metadata"
        )


def _lull(ours: ET.Element | None) -> Lull:
    given = "pause" if ours is None else ours.get("freeze", "pause")
    try:
        return Lull(given)
    except ValueError as error:
        raise Malformed(f'its metadata says freeze="{given}": write pause or migrate') from error


def _tags(ours: ET.Element) -> list[tuple[str, str]]:
    return [(tag.get("name", ""), tag.get("value", "")) for tag in ours.iterfind(f"{_OURS}tag")]


def _told(ours: ET.Element | None) -> Mapping[str, tuple[str, ...]]:
    """The addresses that our element gives, by MAC."""
    told: dict[str, tuple[str, ...]] = {}
    if ours is not None:
        for element in ours.iterfind(f"{_OURS}address"):
            mac = element.get("mac", "").lower()
            told[mac] = (*told.get(mac, ()), element.get("ip", ""))
    return told


def _nic(element: ET.Element, told: Mapping[str, tuple[str, ...]]) -> Nic:
    mac, source = element.find("mac"), element.find("source")
    address = "" if mac is None else mac.get("address", "").lower()
    network = "" if source is None else source.get("network", "")
    # What the operator wrote for us comes first, then what libvirt filters by, then what it sets.
    found = (
        told.get(address)
        or tuple(
            parameter.get("value", "")
            for parameter in element.iterfind("filterref/parameter")
            if parameter.get("name") in ("IP", "IPV6")
        )
        or tuple(one.get("address", "") for one in element.iterfind("ip"))
    )
    return Nic(address, tuple(found), network)

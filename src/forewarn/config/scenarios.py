"""Scenarios: what happens to which VMs, when, and what they are to read then, as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from forewarn.config.fleets import FleetFile, fleet_in, parse_fleet, read_fleet
from forewarn.config.scenario_parsing import TITLES, Reader
from forewarn.config.scenario_steps import AnyStep, ExpectApproval
from forewarn.config.sketches import Sketch
from forewarn.core.scopes import Enabling
from forewarn.errors import Malformed, Unknown
from forewarn.tables.reading import Fault, Faults, Faulty, Table, parse_toml

_TOP: Final = "a scenario"
# The VMs in a few words, as the options of `forewarn emulate` have them.
_SKETCH: Final = ("vm", "spot", "availability_set", "scale_set")
_MEMBERS: Final = {
    _TOP: ("title", "about", *_SKETCH, "scope", "periods", "subscription_id", "step"),
    **TITLES,
}
_PLACED: Final = re.compile(r".*?:\d+: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario, understood."""

    name: str
    title: str
    # A few sentences more.
    about: str
    # The fleet that it is about, and the same as a fleet file.
    fleet: FleetFile
    fleet_toml: str
    steps: tuple[AnyStep, ...]

    @property
    def awaits_handler(self) -> bool:
        """Whether somebody else than the scenario is to approve something."""
        return any(isinstance(step, ExpectApproval) for step in self.steps)


def shipped() -> dict[str, str]:
    """The texts of the scenarios that come with forewarn, by name."""
    found = {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in files("forewarn.scenarios").iterdir()
        if file.name.endswith(".toml")
    }
    return dict(sorted(found.items()))


def shipped_text(name: str) -> str:
    """One of those. Raises: Unknown."""
    text = shipped().get(name)
    if text is None:
        raise Unknown(
            f"no scenario is called {name!r}: `forewarn scenario list` lists those that come with "
            "forewarn; a file of your own is named with its path, such as ./mine.toml"
        )
    return text


def find_scenario(word: str) -> Scenario:
    """The scenario in a file, or the one that comes with forewarn under this name.

    Raises: Unknown; Malformed, with all that is wrong and one line for each fault.
    """
    file = Path(word)
    if "/" in word or file.suffix == ".toml":
        return parse_scenario(read_fleet(file), word, file.stem)
    return parse_scenario(shipped_text(word), f"{word}.toml", word)


def parse_scenario(text: str, file: str, name: str) -> Scenario:
    """The scenario that is written in a text, which errors call by the given file's name.

    Raises: Malformed, with all that is wrong and one line for each fault.
    """
    faults = _StepFaults()
    top = Table(_TOP, parse_toml(text, file), (), faults)
    top.refuse_unknown(_MEMBERS)
    fleet, toml = _fleet(top)
    tables = top.tables("step", "[[step]]")
    if not tables and top.is_sound("step"):
        top.fault("step", "nothing happens in it", "add steps: [[step]] on a line of its own")
    steps = Reader(fleet).steps(tables)
    title, about = top.text("title"), top.text("about")
    faults.raise_any(file, text)
    return Scenario(
        name=name, title=title or name, about=about, fleet=fleet, fleet_toml=toml, steps=steps
    )


class _StepFaults(Faults):
    """Says of which step something is wrong, besides the line."""

    def add(self, fault: Fault) -> None:
        top, *rest = fault.place
        if top == "step" and rest:
            fault = fault._replace(what=f"step {int(rest[0]) + 1}: {fault.what}")
        super().add(fault)


def _fleet(top: Table) -> tuple[FleetFile, str]:
    """The fleet, and the same as a fleet file."""
    sketched = [key for key in _SKETCH if key in top.members]
    if "scope" in top.members:
        if sketched:
            what = f"{sketched[0]} beside [[scope]]"
            top.fault(sketched[0], what, "say which VMs there are in one of the two ways")
        return fleet_in(top, Enabling.ALWAYS), _toml(top.members)
    given = {key: [text for _, text in top.strings(key)] for key in _SKETCH}
    sketch = Sketch(
        machines=given["vm"],
        spots=given["spot"],
        availability_sets=given["availability_set"],
        scale_sets=given["scale_set"],
    )
    rest = fleet_in(top, Enabling.ALWAYS)
    toml = ""
    try:
        toml = f"{_toml(top.members)}\n{sketch.toml}"
        rest = parse_fleet(sketch.toml, "", Enabling.ALWAYS)
    except Malformed as error:
        told = str(error).splitlines()[0]
        # Lines of the sketched file mean nothing to whoever wrote this one.
        told = _PLACED.sub("", told, count=1) if isinstance(error, Faulty) else told
        what, _, remedy = told.rpartition(": ")
        top.fault(sketched[0], what, remedy)
    return rest, toml


def _toml(members: Mapping[str, object]) -> str:
    """The part of a scenario that a fleet file has too, as one."""
    return "\n".join(_lines({k: v for k, v in members.items() if k in _FLEET}, ()))


_FLEET: Final = ("scope", "periods", "subscription_id")


def _lines(members: Mapping[str, object], way: tuple[str, ...]) -> Iterator[str]:
    """A table's own members first: behind another table's heading they would be that one's."""
    inner = {key: value for key, value in members.items() if _is_table(value)}
    for key, value in members.items():
        if key not in inner:
            # JSON's texts, numbers, lists and booleans are TOML's too.
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    for key, value in inner.items():
        path = ".".join((*way, json.dumps(key, ensure_ascii=False)))
        if isinstance(value, dict):
            yield f"[{path}]"
            yield from _lines(value, (*way, json.dumps(key, ensure_ascii=False)))
        elif isinstance(value, list):
            for one in value:
                yield f"[[{path}]]"
                yield from _lines(one, (*way, json.dumps(key, ensure_ascii=False)))


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
    )

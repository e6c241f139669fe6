"""Cases as JSON, for the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from forewarn.agent.cases import Case, Result, Run
from forewarn.agent.hooks import Hook, Phase
from forewarn.client.documents import dump_event, load_event
from forewarn.errors import Malformed


def dump_case(case: Case) -> bytes:
    """A case as it is written down."""
    return json.dumps(
        {
            "event": dump_event(case.event),
            "opened": case.opened.isoformat(),
            "boot": case.boot,
            "not_before": _dump_instant(case.not_before),
            "phases": {
                phase.value: [_dump_run(run) for run in runs] for phase, runs in case.phases.items()
            },
            "is_over": case.is_over,
            "approved": _dump_instant(case.approved),
            "refused": case.refused,
            "prepared": _dump_instant(case.prepared),
        },
        indent=1,
    ).encode()


def load_case(content: bytes) -> Case:
    """A case that was written down. Raises: Malformed."""
    try:
        record = json.loads(content)
        return Case(
            event=load_event(record["event"]),
            opened=datetime.fromisoformat(record["opened"]),
            boot=record["boot"],
            not_before=_load_instant(record["not_before"]),
            phases={
                Phase(phase): tuple(map(_load_run, runs))
                for phase, runs in record["phases"].items()
            },
            is_over=record["is_over"],
            approved=_load_instant(record["approved"]),
            refused=record["refused"],
            prepared=_load_instant(record["prepared"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(f"not a case of the agent: {error!r}") from error


def _dump_run(run: Run) -> dict[str, object]:
    return {
        "name": run.hook.name,
        "command": list(run.hook.command),
        "limit": None if run.hook.limit is None else run.hook.limit.total_seconds(),
        "attempt": run.attempt,
        "began": _dump_instant(run.began),
        "stopped": _dump_instant(run.stopped),
        "stopped_as": None if run.stopped_as is None else run.stopped_as.value,
        "result": None if run.result is None else run.result.value,
        "code": run.code,
        "has_done": run.has_done,
    }


def _load_run(record: Mapping[str, object]) -> Run:
    name, command, limit = record["name"], record["command"], record["limit"]
    attempt, code = record["attempt"], record["code"]
    if not isinstance(command, list) or not isinstance(attempt, int):
        raise TypeError("a run without a command or an attempt")
    return Run(
        hook=Hook(
            str(name),
            tuple(map(str, command)),
            timedelta(seconds=limit) if isinstance(limit, int | float) else None,
        ),
        attempt=attempt,
        began=_load_instant(record["began"]),
        stopped=_load_instant(record["stopped"]),
        stopped_as=_load_result(record["stopped_as"]),
        result=_load_result(record["result"]),
        code=code if isinstance(code, int) else None,
        has_done=record["has_done"] is True,
    )


def _dump_instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _load_instant(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def _load_result(text: object) -> Result | None:
    return None if text is None else Result(text)

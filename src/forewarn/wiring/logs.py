"""How the log looks: text for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

LogFormat = Literal["text", "json"]

# What every log record carries; whatever else it has was given as `extra`.
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# Made once: json.dumps would make one for each line.
_encode: Final = json.JSONEncoder(default=str, ensure_ascii=False).encode


class TextFormatter(logging.Formatter):
    """`2026-11-15T22:10:01Z INFO  message key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.getMessage()}{extra}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the extra fields beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return _encode(fields)


def start_logging(log_format: LogFormat) -> logging.Logger:
    """Send forewarn's log to standard error in this format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    log = logging.getLogger("forewarn")
    log.handlers = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    return log


def _time(record: logging.LogRecord) -> str:
    return _second(int(record.created))


@lru_cache(maxsize=4)
def _second(number: int) -> str:
    """A second as it is spelled; most lines share theirs with the one before."""
    return datetime.fromtimestamp(number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}

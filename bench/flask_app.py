"""The endpoint as people write it today: a Flask application over a dict of documents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, jsonify, request

app = Flask(__name__)
# By the caller's address; the file is named by whoever starts the server.
DOCUMENTS: dict[str, Any] = json.loads(Path(os.environ["BENCH_DOCUMENTS"]).read_text())


@app.get("/metadata/scheduledevents")
def scheduled_events() -> Response:
    """The caller's document."""
    if request.headers.get("Metadata") != "true" or "X-Forwarded-For" in request.headers:
        abort(400)
    if request.args.get("api-version") != "2020-07-01":
        abort(400)
    caller = request.remote_addr or ""
    if caller not in DOCUMENTS:
        abort(403)
    document = DOCUMENTS[caller]
    response = jsonify(document)
    response.headers["ETag"] = f'"{document["DocumentIncarnation"]}"'
    response.headers["x-ms-request-id"] = os.urandom(16).hex()
    return response

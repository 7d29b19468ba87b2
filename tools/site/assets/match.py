"""The answer of `repros match --json` for the page that runs it in a browser."""

from __future__ import annotations

import json

from repros.diagnose.match import log, match_log
from repros.diagnose.match.json_format import match_to_json
from repros.engine.catalogue import load
from repros.model.errors import ReprosError

CATALOGUE = load()


def answer(text: str) -> str:
    """Return the report on a log, as JSON; a log that cannot be read gives the sentence that the command prints."""
    try:
        return json.dumps(match_to_json(match_log(log.decode_lines(text.encode(), "the log"), CATALOGUE)))
    except ReprosError as error:
        return json.dumps({"error": str(error)})

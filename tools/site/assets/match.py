"""The answer of `repros match --json` for the page that runs it in a browser, also where there is no match."""

from __future__ import annotations

import json

from repros.diagnose.match import log, match_log
from repros.diagnose.match.json_format import match_to_json
from repros.diagnose.messages import explain
from repros.diagnose.messages.family import read_families
from repros.diagnose.messages.json_format import explanations_to_json
from repros.engine.catalogue import load
from repros.model.errors import ReprosError

CATALOGUE = load()
FAMILIES = read_families()


def answer(text: str) -> str:
    """Return the report on a log, as JSON; a log that cannot be read gives the sentence that the command prints."""
    try:
        lines = log.decode_lines(text.encode(), "the log")
        found = match_log(lines, CATALOGUE)
        explained = {} if found.candidates else explanations_to_json(explain(found.failures, lines, FAMILIES))
        return json.dumps(match_to_json(found) | explained)
    except ReprosError as error:
        return json.dumps({"error": str(error)})

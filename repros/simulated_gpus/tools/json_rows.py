"""JSON for kept figures, laid out so that `git diff` shows one entry a line."""

from __future__ import annotations

import json
from typing import Any


def dumps_by_row(data: dict[str, Any]) -> str:
    """Return JSON with one line for each entry of the lists and dictionaries in `data`."""

    def block(value: Any) -> str:
        if isinstance(value, dict):
            rows = [f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()]
            return "{\n" + ",\n".join(rows) + "\n  }"
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in value) + "\n  ]"
        return json.dumps(value)

    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {block(value)}" for key, value in data.items()) + "\n}\n"

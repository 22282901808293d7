"""What a page shows already is not sent again: so focus, selection and open parts stay where they are."""

from __future__ import annotations

import json
from typing import Any


class Unchanged:
    """The values of one poll. `stamps` is what the page holds between polls: JSON, {name: stamp of what is shown}."""

    def __init__(self, stamps: str) -> None:
        self.updates: dict[Any, Any] = {}
        try:
            self._stamps = dict(json.loads(stamps or "{}"))
        except (ValueError, TypeError, RecursionError):
            self._stamps = {}

    def changed(self, name: str, content: str) -> bool:
        """Whether the content differs from what the page shows under that name; it counts as shown from now on."""
        from engine.core.step_cache import content_hash

        stamp = content_hash(content)[:12]
        before, self._stamps[name] = self._stamps.get(name), stamp
        return before != stamp

    def put(self, component: Any, name: str, html: str) -> None:
        """Send HTML to a component where it is new."""
        if self.changed(name, html):
            self.updates[component] = html

    @property
    def stamps(self) -> str:
        return json.dumps(self._stamps)

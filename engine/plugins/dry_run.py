"""A dry run: what plugins would send to services, shown and not sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.plugins.stack import PluginStack

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.plugins.plugin import Plugin


def preview(base: BaseModel, plugin: Plugin | PluginStack | None, texts: Sequence[str]) -> tuple[list[Any], str]:
    """(the requests for these texts, the same as JSON lines); no requests where no plugin calls a service."""
    plugins = plugin.plugins if isinstance(plugin, PluginStack) else [plugin] if plugin else []
    selected = [" ".join(text.split()) for text in texts if text.strip()]
    rows = [row for one in plugins for row in one.method.preview(base, one.module, selected)]
    if not rows:
        return rows, "Nothing would be sent: no plugin in use calls a service."
    return rows, "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)

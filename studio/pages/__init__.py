"""One module per page: layout and events."""

from __future__ import annotations

from typing import Any

Values = dict[Any, Any]  # components and what an event gives them to show

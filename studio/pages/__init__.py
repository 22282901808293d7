"""One module per page: layout and events."""

from __future__ import annotations

from typing import Any

Values = dict[Any, Any]  # {component: its new value or update}

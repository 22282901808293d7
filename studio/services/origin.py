"""The address at which a user reaches the studio."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit


def origin_of(headers: Mapping[str, str]) -> str:
    """The address at which the reader's browser reaches the studio, so that copied links also work elsewhere."""
    url = urlsplit(headers.get("origin") or headers.get("referer") or "")
    if url.scheme in ("http", "https") and url.netloc:
        return f"{url.scheme}://{url.netloc}"
    return f"http://{headers.get('host', 'localhost')}"

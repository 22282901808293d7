"""Pages without Gradio: one inline style, one inline script, and a content security policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from fastapi.responses import HTMLResponse
from markupsafe import Markup

from studio.components.templating import render


def plain_page(
    template: str, style: str, script: str = "", *, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> HTMLResponse:
    """A template with its `style` and `script`, which the content security policy allows by hash, so that injected text is
    neither run nor applied. The script may send requests only to this server.
    """
    policy = [
        "default-src 'none'", f"style-src {_source(style)}", "img-src 'self'", "form-action 'self'", "base-uri 'none'",
        "frame-ancestors 'none'", *([f"script-src {_source(script)}", "connect-src 'self'"] if script else []),
    ]  # fmt: skip
    page = render(template, style=Markup(style), script=Markup(script), **values)
    return HTMLResponse(page, status, {**(headers or {}), "Content-Security-Policy": "; ".join(policy)})


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

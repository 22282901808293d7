"""JSON with a structure defined elsewhere, passed on or read with checks."""

from __future__ import annotations

from typing import Any

# From another program (a model's config.json, stanza's resources), from a bundle or workspace of possibly another version, or
# from a column or pipe with different content for each kind of job.
Json = dict[str, Any]

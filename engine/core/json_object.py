"""JSON that this code hands on, or reads with care: its shape is decided elsewhere."""

from __future__ import annotations

from typing import Any

# Of another program (a model's config.json, stanza's resources), of a bundle or workspace that another version may have
# written, or of a column or a pipe that holds something else for each kind of job.
Json = dict[str, Any]

"""JSON whose shape is defined elsewhere: passed on, or read with checks."""

from __future__ import annotations

from typing import Any

# Of another program (a model's config.json, stanza's resources), of a bundle or workspace that another version may have
# written, or of a column or a pipe that holds something else for each kind of job.
Json = dict[str, Any]

"""A comparison as a file: XLSX, TMX 1.4b, JSON, and one self-contained HTML page."""

from __future__ import annotations

from engine.workflows.compare.export.content import Content, content_of
from engine.workflows.compare.export.write import FORMATS, write

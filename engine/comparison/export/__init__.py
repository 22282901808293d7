"""A comparison as a file: TSV, TMX 1.4b, XLIFF 1.2, XLSX, JSON, and one HTML page that needs nothing else."""

from __future__ import annotations

from engine.comparison.export.content import Content, content_of
from engine.comparison.export.write import FORMATS, FileFormat, write

__all__ = ["FORMATS", "Content", "FileFormat", "content_of", "write"]

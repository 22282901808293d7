"""The segments of a translated document: reading them page by page and editing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.jobs.handlers.documents import Documents, TranslatedDocument
from engine.workflows.document_segments import doubt_of, translation_of
from studio.services.jsonl_pages import open_lines

if TYPE_CHECKING:
    from studio.services.service import Service

MOST = 20_000  # characters of an edited segment


@dataclass(frozen=True)
class DocumentSegment:
    """A segment; `index` counts from 0, `doubt` is the reason to review it, empty if there is none."""

    index: int
    place: str
    source: str
    translation: str
    doubt: str
    edited: bool


def documents_of(service: Service) -> Documents:
    """Operations on the documents of the store."""
    return Documents(service.store, service.settings)


def segments_of(document: TranslatedDocument, offset: int, limit: int) -> tuple[list[DocumentSegment], int]:
    """Up to `limit` segments of a document from `offset` on, and its number of segments; none while it is not translated."""
    lines = open_lines(document.segments) if document.segments else None
    if lines is None:
        return [], 0
    indices = range(offset, min(len(lines), offset + limit))
    segments = [
        DocumentSegment(index, str(row["place"]), str(row["source"]), translation_of(row), doubt_of(row), bool(row.get("edited")))
        for index, row in zip(indices, lines.get(indices), strict=True)
        if row
    ]
    return segments, len(lines)


def edit_document(service: Service, number: int, index: int, text: str) -> None:
    """Edit a segment and rebuild the document. Raises Forbidden if the caller has read-only access to its project, and
    InputError if the text is too long or as `Documents.edit` does.
    """
    documents = documents_of(service)
    service.workspace(documents.get(number).job.project_id or 0, change=True)
    if len(text) > MOST:
        raise InputError("A segment may have at most {most} characters. Shorten it.", most=f"{MOST:,}")
    documents.edit(number, index, text)

"""Documents in, the same documents out in another language: DOCX, ODT, XLIFF, PO, SRT, WebVTT, HTML, Markdown, TXT.

    report = translate_document(Path("manual.docx"), Path("manual.zh.docx"), BaseTranslator(base, plugin))

A reader gives units (paragraphs, entries, captions) whose texts have tags; sentences are translated as plain text by the
base, so that a document's sentences are what `base.translate` gives; tags are put back by alignment
(`engine.decoding.tags`), placeholders are kept by stand-ins and checked; the writer exchanges the texts and nothing else.
"""

from engine.documents.formats import ENDINGS, is_document, open_document
from engine.documents.model import Context, Document, DocumentError, DocumentOptions, Result, Unit
from engine.documents.run import DocumentReport, translate_document
from engine.documents.translate import BaseTranslator, Finished, Translator, translate_units

__all__ = [
    "ENDINGS",
    "BaseTranslator",
    "Context",
    "Document",
    "DocumentError",
    "DocumentOptions",
    "DocumentReport",
    "Finished",
    "Result",
    "Translator",
    "Unit",
    "is_document",
    "open_document",
    "translate_document",
    "translate_units",
]

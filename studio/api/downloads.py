"""Downloads of the pages: comparisons, documents, plugins, phrase tables and rating rounds; and the data of the phrase map."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse, StreamingResponse

from engine.core.csv_export import write_row
from engine.errors import NotFoundError, StorageError, TailorError
from engine.plugins import read_bundle_card
from engine.workflows import human_rating as rounds
from engine.workflows.compare.export import FORMATS, content_of, write
from engine.workflows.explore.phrase_map import MAP_FILE
from studio.api.uploads import sent_once
from studio.i18n.translate import translate_message
from studio.services.document_segments import documents_of
from studio.services.files import slug
from studio.services.phrases import Phrases, PhraseView
from studio.services.project_phrases import ProjectPhrases
from studio.services.service import Service

HEADS = ("phrase", "back_translation", "kind", "tokens", "times", "in_samples", "in_general_text", "log_ratio",
         "log_ratio_low", "log_ratio_high", "log_likelihood", "layer", "left_out")  # fmt: skip
Asked = ParamSpec("Asked")


def add_download_routes(app: FastAPI, service: Service) -> None:
    """`/download/comparisons/3?format=xlsx`, `/download/documents/7`, `/download/plugins/3` (with `?phrases=no`, a new bundle
    without the user's text), `/download/phrases/3` with the parameters of the page, `/download/ratings/3.csv`.
    """

    @app.get("/download/comparisons/{number}", include_in_schema=False)
    @plain_text_errors
    def comparison(number: int, format: str = "xlsx") -> Response:
        if format not in FORMATS:
            return missing(f"There is no format {format}: take one of {', '.join(FORMATS)}.")
        content = content_of(service.store, number)
        name = re.sub(r'[\\/:*?"<>|\s\x00-\x1f]+', " ", content.title).strip(" .")[:60] or f"comparison {number}"
        ending = FORMATS[format].ending
        plain, encoded = f"comparison-{number}{ending}", quote(name.removesuffix(ending) + ending)
        return sent_once(
            service.settings, ending, lambda path: write(content, path, format), media_type=FORMATS[format].media,
            headers={"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"},
        )  # fmt: skip

    @app.get("/download/documents/{number}", include_in_schema=False)
    @plain_text_errors
    def document(number: int) -> Response:
        row = documents_of(service).get(number)
        if row.output is None:
            return missing(f"There is no translation of {row.name}.")
        # Never displayed in the browser: a foreign HTML page would run with the studio's origin.
        return FileResponse(row.output, filename=row.output.name, media_type="application/octet-stream")

    @app.get("/download/plugins/{number}", include_in_schema=False)
    @plain_text_errors
    def plugin(number: int, phrases: str = "yes") -> Response:
        row = service.store.plugins.get(number)
        if not row.exists:
            return missing(f"The bundle of {row.name} is no longer at its place.")
        name = slug(row.name)
        if phrases != "no" and read_bundle_card(row.path)["name"] == row.name:
            return FileResponse(row.path, filename=f"{name}.zip", media_type="application/zip")
        return sent_once(
            service.settings, ".zip", lambda path: service.library.export(row, path, with_phrases=phrases != "no"),
            filename=f"{name}-without-phrases.zip" if phrases == "no" else f"{name}.zip", media_type="application/zip",
        )  # fmt: skip

    @app.get("/download/phrases/{number}", include_in_schema=False)
    @plain_text_errors
    def table(number: int, request: Request) -> Response:
        project = service.store.projects.get(number)
        result = ProjectPhrases(service, project).table()
        if result is None:
            return missing("This project has no phrases yet.")
        headers = {"Content-Disposition": f'attachment; filename="phrases-{number}.csv"'}
        view = PhraseView.of(dict(request.query_params))
        return StreamingResponse(lines(result, view), media_type="text/csv; charset=utf-8", headers=headers)

    @app.get("/tm/projects/{number}/phrase-map", include_in_schema=False)
    @plain_text_errors
    def points(number: int, request: Request) -> Response:
        file = service.workspace(service.store.projects.get(number).id) / MAP_FILE
        if not file.is_file():
            return missing("There is no map yet.")
        data, headers = file.read_bytes(), {"Cache-Control": "private, max-age=86400", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(data, media_type="application/json", headers={**headers, "Content-Encoding": "gzip"})
        return Response(gzip.decompress(data), media_type="application/json", headers=headers)

    @app.get("/download/ratings/{number}.{ending}", include_in_schema=False)
    @plain_text_errors
    def rating(number: int, ending: str) -> Response:
        row = service.store.ratings.get(number)
        if ending == "csv":  # the byte order mark tells Excel that the file is UTF-8
            text, kind = "\ufeff" + rounds.as_csv(service.store, row), "text/csv"
        elif ending == "json":
            mapping = rounds.as_mapping(service.store, row)
            text, kind = json.dumps(mapping, ensure_ascii=False, indent=2) + "\n", "application/json"
        else:
            return missing("A round can be had as csv or json.")
        headers = {"Content-Disposition": f'attachment; filename="rating-{number}.{ending}"'}
        return Response(text, 200, headers, f"{kind}; charset=utf-8")


def missing(text: str) -> Response:
    return PlainTextResponse(text, 404)


def plain_text_errors(answer: Callable[Asked, Response]) -> Callable[Asked, Response]:
    """Decorates a handler so that it answers a TailorError with its translated message."""

    @wraps(answer)
    def answered(*args: Asked.args, **kwargs: Asked.kwargs) -> Response:
        try:
            return answer(*args, **kwargs)
        except TailorError as error:
            status = 404 if isinstance(error, NotFoundError) else 507 if isinstance(error, StorageError) else 409
            return PlainTextResponse(translate_message(error.message), status)

    return answered


def lines(phrases: Phrases, view: PhraseView) -> Iterator[str]:
    """Yield the rows of a view as CSV with a header, starting with a byte order mark, by which spreadsheets recognise UTF-8."""
    text = io.StringIO("\ufeff")
    text.seek(1)
    write_row(text, HEADS)
    for number, position in enumerate(phrases.select(view), 1):
        row = phrases.row(int(position))
        ratios = [] if row.ratio is None else [row.ratio, row.low, row.high, row.log_likelihood]
        general = [row.general, *(f"{value:.3f}" for value in ratios)] if ratios else [""] * 5
        write_row(text, [
            row.text, row.source, row.label, row.length, row.count, row.own,
            *general, row.layer + 1 if row.layer >= 0 else "", int(row.excluded),
        ])  # fmt: skip
        if number % 1000 == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()

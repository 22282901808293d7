"""The rater's page, at an address that only the rater knows, and the routes for its answers.

It is separate from the studio's pages: anybody may be a rater, and raters see two texts and three questions, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from fastapi import Body, FastAPI, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from markupsafe import Markup

from engine.errors import TailorError
from engine.store.ratings import RaterRow
from engine.workflows import human_rating as rounds
from studio.components.page_policy import plain_page
from studio.components.templating import script
from studio.components.theme import plain_style
from studio.i18n.translate import mark, tr, translate_message
from studio.services.service import Service

UNKNOWN = mark("This link does not open a rating. Ask the person who sent it for a new one.")
PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def add_rater_routes(app: FastAPI, service: Service) -> None:
    """Add the raters' pages and the routes for their answers."""

    def respond(token: str, act: Callable[[RaterRow], None] | None = None) -> Response:
        rater = service.store.ratings.rater(token)
        if rater is None:
            return JSONResponse({"error": tr(UNKNOWN)}, 404, PRIVATE)
        try:
            if act is not None:
                act(rater)
            return JSONResponse(rounds.task(service.store, rater).to_mapping(), 200, PRIVATE)
        except TailorError as error:
            return JSONResponse({"error": translate_message(error.message)}, 400, PRIVATE)

    @app.get("/rating/{token}", include_in_schema=False)
    def rating_page(token: str) -> Response:
        rater = service.store.ratings.rater(token)
        if rater is None:
            return PlainTextResponse(tr(UNKNOWN), 404)
        row = service.store.ratings.get(rater.round_id)
        data = {"source": row.source, "target": row.target, "examples": row.about.get("examples", [])}
        # Escapes `<`, since `</script>` in a text would end the element.
        about = Markup(json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))
        style = f"{plain_style()}\n{script('rating.css')}"
        return plain_page("rating.html", style, script("rating.js"), headers=PRIVATE, about=about)

    @app.get("/rating/{token}/state", include_in_schema=False)
    def rating_state(token: str) -> Response:
        return respond(token)

    @app.post("/rating/{token}/answer", include_in_schema=False)
    def rating_answer(
        token: str, item: int = Body(), question: str = Body(max_length=20), side: str = Body(max_length=20)
    ) -> Response:
        return respond(token, lambda rater: rounds.choose(service.store, rater, item, question, side))

    @app.post("/rating/{token}/skip", include_in_schema=False)
    def rating_skip(token: str, item: int = Body(embed=True)) -> Response:
        return respond(token, lambda rater: rounds.skip(service.store, rater, item))

    @app.post("/rating/{token}/undo", include_in_schema=False)
    def rating_undo(token: str) -> Response:
        return respond(token, lambda rater: rounds.undo(service.store, rater))

    @app.post("/rating/{token}/again", include_in_schema=False)
    def rating_again(token: str) -> Response:
        return respond(token, lambda rater: rounds.ask_again(service.store, rater))

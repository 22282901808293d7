"""The LibreTranslate API, for programs that support it: /translate, /languages, /detect, /health, /frontend/settings.

Requests may be JSON, a form, or values in the address. The project and plugin are chosen as for /api/v1/translate; they can be
given as additional values, `project` and `plugin`, or in the address: `/cat/3/translate` is project 3 with its default plugin,
`/cat/3/7/translate` its plugin 7, `/cat/3/base/translate` its base without a plugin. `alternatives` are not supported: the list
is empty.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from engine.core.languages import read_tag
from engine.corpora.language import base_language, confidences
from engine.errors import InputError
from engine.store import ProjectRow
from studio.api.cat_tools import Selection, SelectionDep, admit, already_in, mount, project_at
from studio.api.catalog import languages
from studio.api.deps import Deps, DepsDep
from studio.api.errors import answers_of
from studio.api.form_or_json import body_schema, validated_body
from studio.api.translate import Markup, check_length, translated
from studio.auth.identity import tokens_needed
from studio.services.catalog import language_name

OLD_CODES = {"zt": "zh-Hant"}  # LibreTranslate's code for traditional Chinese
HEADERS = ("x-tailormt-project", "x-tailormt-plugin")
MOST_TEXTS = 1000


class LibreError(BaseModel):
    error: str = Field(description="One sentence.")


router = APIRouter(tags=["LibreTranslate"], responses=answers_of(LibreError, without=422))
cat_routes = APIRouter()  # also for a project or plugin in the address


class LibreRequest(BaseModel):
    """A request to /translate; unknown values are ignored."""

    model_config = ConfigDict(extra="ignore")

    q: str | list[str] = Field(description="A text, or a list of them.", examples=["The rain stopped."])
    source: str = Field("auto", max_length=35, description="A language code, or `auto`.")
    target: str = Field(max_length=35, examples=["zh"])
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=100, description="Accepted; there are none.")
    api_key: str = Field("", max_length=200)
    project: str = Field("", max_length=120, description="Number or name of a project.")
    plugin: str = Field("", max_length=120, description="Number or name of a plugin, or `base`.")
    strength: float = Field(1.0, ge=0, le=2)


class DetectRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    q: str | list[str]
    api_key: str = Field("", max_length=200)


class Detected(BaseModel):
    confidence: float = Field(description="From 0 to 100.")
    language: str


class LibreTranslated(BaseModel):
    translatedText: str | list[str]  # noqa: N815 - LibreTranslate's names
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str]


async def run(request: Request, deps: Deps, selection: Selection) -> dict[str, object]:
    sent = await admit(request, "api_key", ("q",))
    body = sent.read(LibreRequest)
    texts = list(body.q) if isinstance(body.q, list) else [body.q]
    if len(texts) > MOST_TEXTS:
        raise InputError(f"{len(texts)} texts are too many for one request; send up to {MOST_TEXTS}.")
    check_length(texts)
    source = "" if body.source.lower() in ("auto", "") else OLD_CODES.get(body.source.lower(), body.source)
    target = OLD_CODES.get(body.target.lower(), body.target)
    sample = "\n".join(texts[:20])
    selection = Selection(
        selection.project or body.project or request.headers.get(HEADERS[0], ""),
        selection.plugin or body.plugin or request.headers.get(HEADERS[1], ""),
    )
    if language := await run_in_threadpool(already_in, deps, selection, source, target, sample):
        return await answer_of(body, texts, language, sample)
    route = await run_in_threadpool(deps.route, source, target, selection.project, selection.plugin, sample)
    translations = await translated(request, deps, sent.caller, route, route.work(body.strength), texts, Markup(body.format))
    return await answer_of(body, translations, route.source, sample)


async def answer_of(body: LibreRequest, texts: list[str], language: str, sample: str) -> dict[str, object]:
    """A response in LibreTranslate's format: the texts and, if the source was not given, the language with its confidence."""
    batch = isinstance(body.q, list)
    answer: dict[str, object] = {"translatedText": texts if batch else texts[0]}
    if body.source.lower() in ("auto", ""):
        detected = {"confidence": await run_in_threadpool(sure, sample, language), "language": language}
        answer["detectedLanguage"] = [detected] * len(texts) if batch else detected
    if body.alternatives:
        answer["alternatives"] = [[] for _ in texts] if batch else []
    return answer


def sure(text: str, language: str) -> float:
    """The confidence that a text is in a language, from 0 to 100."""
    code = base_language(language)
    return round(100 * dict(confidences(text, code)).get(code, 0.0), 1)


POSTED = body_schema(LibreRequest)
ASKED = {
    "parameters": [
        {"name": "q", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "target", "in": "query", "required": True, "schema": {"type": "string", "maxLength": 35}},
        {"name": "source", "in": "query", "schema": {"type": "string", "maxLength": 35, "default": "auto"}},
        {"name": "format", "in": "query", "schema": {"type": "string", "enum": ["text", "html"]}},
    ]
}
KEYED = {"parameters": [{"name": "api_key", "in": "query", "schema": {"type": "string"}}]}


@cat_routes.post("/translate", openapi_extra=POSTED, response_model=LibreTranslated, response_model_exclude_unset=True)
async def translate_posted(request: Request, deps: DepsDep, selection: SelectionDep) -> dict[str, object]:
    """Translate a text or a list of texts."""
    return await run(request, deps, selection)


@cat_routes.get("/translate", openapi_extra=ASKED, response_model=LibreTranslated, response_model_exclude_unset=True)
async def translate_asked(request: Request, deps: DepsDep, selection: SelectionDep) -> dict[str, object]:
    """Translate a text in the address. Without q and target, /translate is a page of the studio."""
    return await run(request, deps, selection)


def listed(deps: Deps) -> list[LibreLanguage]:
    directions = languages(deps)
    codes = sorted({*directions, *(target for targets in directions.values() for target in targets)})
    return [LibreLanguage(code=code, name=language_name(code), targets=sorted(directions.get(code, ()))) for code in codes]


@cat_routes.get("/languages", openapi_extra=KEYED)
async def list_languages(request: Request, deps: DepsDep, selection: SelectionDep) -> list[LibreLanguage]:
    """The languages with their target languages; for a project, its two languages."""
    await admit(request, "api_key")  # some clients put the key into the body of a GET
    row = await run_in_threadpool(project_at, deps, selection)
    return await (run_in_threadpool(of_project, row) if row else run_in_threadpool(listed, deps))


def of_project(row: ProjectRow) -> list[LibreLanguage]:
    return [
        LibreLanguage(code=row.source, name=language_name(row.source), targets=[row.target]),
        LibreLanguage(code=row.target, name=language_name(row.target), targets=[]),
    ]


@router.post("/detect", openapi_extra=body_schema(DetectRequest))
async def detect(request: Request, deps: DepsDep) -> list[Detected]:
    """Detect the language of a text; the likeliest languages come first."""
    sent = await admit(request, "api_key")
    body = validated_body(DetectRequest, sent.values, sent.typed)
    text = "\n".join(body.q) if isinstance(body.q, list) else body.q
    check_length([text])
    short = {tag.language for pair in await run_in_threadpool(deps.directions) for code in pair if (tag := read_tag(code))}
    likely = await run_in_threadpool(confidences, text, *sorted(short))
    best = [(code, value) for code, value in likely if value >= 0.01][:5]
    return [Detected(confidence=round(100 * value, 1), language=code) for code, value in best]


@router.get("/health")
async def health() -> dict[str, str]:
    """Check that the studio is running. Needs no token."""
    return {"status": "ok"}


@router.get("/frontend/settings")
def frontend_settings(deps: DepsDep) -> dict[str, Any]:
    """The settings of LibreTranslate's page, from which some clients read limits and whether a key is needed."""
    offered = listed(deps) if not tokens_needed(deps.service.settings) else []
    pair = next(((language, target) for language in offered for target in language.targets), None)
    names = {language.code: language.name for language in offered}
    return {
        "apiKeys": True,
        "keyRequired": tokens_needed(deps.service.settings),
        "charLimit": -1,
        "frontendTimeout": 500,
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "language": {
            "source": {"code": pair[0].code if pair else "auto", "name": pair[0].name if pair else "Auto Detect"},
            "target": {"code": pair[1] if pair else "", "name": names.get(pair[1], "") if pair else ""},
        },
    }


mount(cat_routes, router)

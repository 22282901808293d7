"""LibreTranslate's interface, for the many programs that speak it: /translate, /languages, /detect, /health, /frontend/settings.

Requests may be JSON, a form, or values in the address. The project and plugin are those that /api/v1/translate would take;
`project` and `plugin` may be named as further values, or be part of the address: `/cat/3/translate` is project 3 with its
default plugin, `/cat/3/7/translate` its plugin 7, `/cat/3/base/translate` its base alone. `alternatives` are not offered:
the list is empty.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from engine.errors import InputError
from engine.languages import read_tag
from studio.api.auth import check, tokens_needed
from studio.api.catalog import languages
from studio.api.desk import Desk, DeskDep
from studio.api.errors import SAID
from studio.api.translate import translated
from studio.api.wire import body_schema, values_of, wished

__all__ = ["router"]

OLD_CODES = {"zt": "zh-Hant"}  # LibreTranslate's own word for traditional Chinese
HEADERS = ("x-tailormt-project", "x-tailormt-plugin")
MOST_TEXTS = 1000


class LibreError(BaseModel):
    error: str = Field(description="One sentence.")


ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"model": LibreError, "description": SAID[status]}
    for status in (400, 401, 403, 404, 409, 413, 429, 500, 507)
}
router = APIRouter(tags=["LibreTranslate"], responses=ANSWERS)


class LibreWish(BaseModel):
    """What /translate takes; other values are passed over."""

    model_config = ConfigDict(extra="ignore")

    q: str | list[str] = Field(description="A text, or a list of them.", examples=["The rain stopped."])
    source: str = Field("auto", max_length=35, description="A language code, or `auto`.")
    target: str = Field(max_length=35, examples=["zh"])
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, description="Accepted; there are none.")
    api_key: str = Field("", max_length=200)
    project: str = Field("", max_length=120, description="Number or name of a project.")
    plugin: str = Field("", max_length=120, description="Number or name of a plugin, or `base`.")
    strength: float = Field(1.0, ge=0, le=2)


class DetectWish(BaseModel):
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


Named = Annotated[str, Path(max_length=120)]


async def run(request: Request, desk: Desk, project: str = "", plugin: str = "") -> dict[str, Any]:
    values, typed = await values_of(request, many=("q",))
    key = values.get("api_key")
    caller = await run_in_threadpool(check, request, "translate", key if isinstance(key, str) else "")
    wish = wished(LibreWish, {name: value for name, value in values.items() if value is not None}, typed)
    batch = isinstance(wish.q, list)
    texts = list(wish.q) if isinstance(wish.q, list) else [wish.q]
    if len(texts) > MOST_TEXTS:
        raise InputError(f"{len(texts)} texts are too many for one request; send up to {MOST_TEXTS}.")
    source = "" if wish.source.lower() in ("auto", "") else OLD_CODES.get(wish.source.lower(), wish.source)
    target = OLD_CODES.get(wish.target.lower(), wish.target)
    means = await run_in_threadpool(
        desk.means,
        source,
        target,
        project or wish.project or request.headers.get(HEADERS[0], ""),
        plugin or wish.plugin or request.headers.get(HEADERS[1], ""),
        "\n".join(texts[:20]),
    )
    found = await translated(desk, caller, means, texts, kind=wish.format, strength=wish.strength)
    answer: dict[str, Any] = {"translatedText": found if batch else found[0]}
    if not source:
        told = {
            "confidence": await run_in_threadpool(sure, "\n".join(texts[:20]), means.source),
            "language": means.source,
        }
        answer["detectedLanguage"] = [told] * len(texts) if batch else told
    if wish.alternatives:
        answer["alternatives"] = [[] for _ in texts] if batch else []
    return answer


def sure(text: str, language: str) -> float:
    """How sure it is that a text is in a language, from 0 to 100."""
    from engine.corpora.language import base_language, confidences

    wanted = base_language(language)
    return round(100 * dict(confidences(text, wanted)).get(wanted, 0.0), 1)


POSTED = body_schema(LibreWish)
ASKED = {
    "parameters": [
        {"name": "q", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "target", "in": "query", "required": True, "schema": {"type": "string", "maxLength": 35}},
        {"name": "source", "in": "query", "schema": {"type": "string", "maxLength": 35, "default": "auto"}},
        {"name": "format", "in": "query", "schema": {"type": "string", "enum": ["text", "html"]}},
    ]
}
KEYED = {"parameters": [{"name": "api_key", "in": "query", "schema": {"type": "string"}}]}
SHOWN: dict[str, Any] = {"response_model": LibreTranslated, "response_model_exclude_unset": True}


@router.post("/translate", openapi_extra=POSTED, **SHOWN)
async def translate_posted(request: Request, desk: DeskDep) -> dict[str, Any]:
    """Translate a text or a list of them."""
    return await run(request, desk)


@router.get("/translate", openapi_extra=ASKED, **SHOWN)
async def translate_asked(request: Request, desk: DeskDep) -> dict[str, Any]:
    """Translate a text in the address. Without q and target this address is the studio's page."""
    return await run(request, desk)


@router.post("/cat/{project}/translate", openapi_extra=POSTED, **SHOWN)
async def translate_for_project(request: Request, desk: DeskDep, project: Named) -> dict[str, Any]:
    """The same for a project, for programs that can be told an address but not more."""
    return await run(request, desk, project)


@router.get("/cat/{project}/translate", openapi_extra=ASKED, **SHOWN)
async def ask_for_project(request: Request, desk: DeskDep, project: Named) -> dict[str, Any]:
    """The same with the text in the address, as OmegaT sends it."""
    return await run(request, desk, project)


@router.get("/cat/{project}/{plugin}/translate", openapi_extra=ASKED, **SHOWN)
async def ask_with_plugin(request: Request, desk: DeskDep, project: Named, plugin: Named) -> dict[str, Any]:
    """The same with the text in the address."""
    return await run(request, desk, project, plugin)


@router.post("/cat/{project}/{plugin}/translate", openapi_extra=POSTED, **SHOWN)
async def translate_with_plugin(request: Request, desk: DeskDep, project: Named, plugin: Named) -> dict[str, Any]:
    """The same for a project's plugin, or with `base` for its base alone."""
    return await run(request, desk, project, plugin)


def listed(desk: Desk) -> list[LibreLanguage]:
    from studio.catalog import language_name

    known = languages(desk)
    codes = sorted({*known, *(one for targets in known.values() for one in targets)})
    return [LibreLanguage(code=code, name=language_name(code), targets=sorted(known.get(code, ()))) for code in codes]


@router.get("/languages", openapi_extra=KEYED)
async def list_languages(request: Request, desk: DeskDep) -> list[LibreLanguage]:
    """Languages that can be translated from, each with its targets."""
    await let_in(request)
    return await run_in_threadpool(listed, desk)


async def let_in(request: Request) -> None:
    """Raises Problem without a token where one is needed; some clients put the key into the body of a GET."""
    values, _ = await values_of(request)
    key = values.get("api_key")
    await run_in_threadpool(check, request, "translate", key if isinstance(key, str) else "")


def of_project(desk: Desk, name: str, plugin: str = "") -> list[LibreLanguage]:
    from studio.catalog import language_name

    row = desk.find_project(name)
    if plugin:
        desk.find_plugin(plugin, row)
    return [
        LibreLanguage(code=row.source, name=language_name(row.source), targets=[row.target]),
        LibreLanguage(code=row.target, name=language_name(row.target), targets=[]),
    ]


@router.get("/cat/{project}/languages", openapi_extra=KEYED)
async def project_languages(request: Request, desk: DeskDep, project: Named) -> list[LibreLanguage]:
    """The project's two languages."""
    await let_in(request)
    return await run_in_threadpool(of_project, desk, project)


@router.get("/cat/{project}/{plugin}/languages", openapi_extra=KEYED)
async def plugin_languages(request: Request, desk: DeskDep, project: Named, plugin: Named) -> list[LibreLanguage]:
    """The project's two languages."""
    await let_in(request)
    return await run_in_threadpool(of_project, desk, project, plugin)


@router.post("/detect", openapi_extra=body_schema(DetectWish))
async def detect(request: Request, desk: DeskDep) -> list[Detected]:
    """The languages that a text may be in, the likeliest first."""
    from engine.corpora.language import confidences

    values, typed = await values_of(request)
    key = values.get("api_key")
    await run_in_threadpool(check, request, "translate", key if isinstance(key, str) else "")
    wish = wished(DetectWish, values, typed)
    text = "\n".join(wish.q) if isinstance(wish.q, list) else wish.q
    short = {
        tag.language for pair in await run_in_threadpool(desk.directions) for one in pair if (tag := read_tag(one))
    }
    found = await run_in_threadpool(confidences, text, *sorted(short))
    best = [(code, value) for code, value in found if value >= 0.01][:5]
    return [Detected(confidence=round(100 * value, 1), language=code) for code, value in best]


@router.get("/health")
def health() -> dict[str, str]:
    """That the studio runs. Needs no token."""
    return {"status": "ok"}


@router.get("/frontend/settings")
def frontend_settings(desk: DeskDep) -> dict[str, Any]:
    """What LibreTranslate tells its own page; some clients ask it for limits and whether a key is needed."""
    known = listed(desk) if not tokens_needed(desk.service.settings) else []
    pair = next(((one, target) for one in known for target in one.targets), None)
    names = {one.code: one.name for one in known}
    return {
        "apiKeys": True,
        "keyRequired": tokens_needed(desk.service.settings),
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

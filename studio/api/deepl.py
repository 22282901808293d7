"""The DeepL API, for CAT tools and libraries that support it: /v2/translate, /v2/languages and /v2/usage.

Language codes are spelt as in DeepL's API: EN, EN-GB, ZH-HANS. Plugins take the role of DeepL's style rules and can also be used as
glossaries: both lists include the plugins, and `style_id` or `glossary_id` selects one by its listed id, its number or its name.
The `glossary_id` of a glossary that a client made (deepl_glossaries.py) enforces its terms. The prefix `/cat/3` means project 3,
`/cat/3/7` its plugin 7. `context`, `model_type` and the preferred formalities (prefer_more, prefer_less) are accepted but have no
effect; other formalities, and translation memories (deepl_styles.py), are refused.
"""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from engine.core.languages import read_tag, same_language
from engine.core.numerals import whole_number
from engine.errors import InputError, NotFoundError
from engine.store import PluginRow
from studio.api.cat_tools import Selection, SelectionDep, admit, already_in, mount
from studio.api.deps import Deps, DepsDep, Route
from studio.api.errors import Problem, answer_of, answers_of
from studio.api.form_or_json import body_schema
from studio.api.translate import Markup, check_length, translated
from studio.services.catalog import language_name
from studio.services.glossaries import Glossaries, Glossary

UNLIMITED = 1_000_000_000_000
ID = "7a110000-0000-4000-8000-{:012d}"  # DeepL's ids have this format, and some clients check it
ID_SHAPE = re.compile(r"7a110000-0000-4000-8000-([0-9]{12})")
# Target languages that DeepL offers only with a region or script.
VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR"), "zh": ("ZH", "ZH-HANS")}
TAGS = ("non_splitting_tags", "splitting_tags", "ignore_tags")
LISTS = ("text", *TAGS, "glossary_ids")


class DeepLError(BaseModel):
    message: str = Field(description="One sentence.")


ANSWERS = answers_of(DeepLError, without=422) | {456: answer_of(DeepLError, "The token's quota of this month is used up.")}
router = APIRouter(tags=["DeepL"], responses=ANSWERS)
ANY = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
cat_routes = APIRouter()  # also for a project or plugin in the address
Formality = Literal["default", "more", "less", "prefer_more", "prefer_less"]
ModelType = Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"]
Tags = list[Annotated[str, StringConstraints(max_length=200)]]


class DeepLRequest(BaseModel):
    """A request to /v2/translate; unknown values are ignored."""

    model_config = ConfigDict(extra="ignore")

    text: list[str] = Field(min_length=1, max_length=1000, examples=[["The rain stopped."]])
    target_lang: str = Field(min_length=2, max_length=35, examples=["ZH"])
    source_lang: str = Field("", max_length=35, examples=["EN"])
    split_sentences: Literal["0", "1", "nonewlines"] | None = None
    preserve_formatting: bool = False
    formality: Formality = "default"
    tag_handling: Literal["xml", "html"] | None = None
    outline_detection: bool = True
    non_splitting_tags: Tags = []
    splitting_tags: Tags = []
    ignore_tags: Tags = []
    glossary_id: str = Field("", max_length=120)
    glossary_ids: Tags = Field([], max_length=5)
    style_id: str = Field("", max_length=120)
    translation_memory_id: str = Field("", max_length=120)
    context: str = ""
    show_billed_characters: bool = True
    model_type: ModelType | None = None
    auth_key: str = Field("", max_length=200)

    @field_validator("text", *TAGS, "glossary_ids", mode="before")
    @classmethod
    def listed(cls, value: Any, info: Any) -> Any:
        """Make a list of a single text, and of tags or ids joined by commas."""
        if info.field_name == "text":
            return [value] if isinstance(value, str) else value
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return [part.strip() for item in value for part in item.split(",") if part.strip()]
        return value


class DeepLText(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int | None = None
    model_type_used: str | None = None


class DeepLTranslated(BaseModel):
    translations: list[DeepLText]


class DeepLLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool | None = None


class Usage(BaseModel):
    character_count: int
    character_limit: int


def source_spelt(tag: str) -> str:
    """A source language as DeepL spells it, without region or script."""
    parsed = read_tag(tag)
    return (parsed.language if parsed else tag).upper()


def plugin_id(number: int) -> str:
    """A plugin's number as an id in DeepL's format."""
    return ID.format(number)


def plugin_named(name: str) -> str:
    """The number or name of a plugin, also if it is named by its id in DeepL's format."""
    match = ID_SHAPE.fullmatch(name)
    return str(whole_number(match[1], high=UNLIMITED) or 0) if match else name


def terms_of(deps: Deps, body: DeepLRequest, route: Route) -> str:
    """The terms of a request's glossaries for the languages of its route. Raises NotFoundError if a glossary lacks them."""
    dictionaries = [glossary.dictionary(route.source, route.target) for glossary in glossaries_of(deps, body)]
    return "\n".join(dictionary.terms for dictionary in dictionaries)


def glossaries_of(deps: Deps, body: DeepLRequest) -> list[Glossary]:
    """The glossaries in a request; other names are omitted, since they may be those of plugins."""
    stored = Glossaries(deps.service)
    glossaries = (stored.find(name) for name in glossary_names(body))
    return [glossary for glossary in glossaries if glossary is not None]


def glossary_names(body: DeepLRequest) -> list[str]:
    """The ids or names in a request's glossary fields."""
    return [name.strip() for name in (body.glossary_id, *body.glossary_ids) if name.strip()]


def check_offered(body: DeepLRequest) -> None:
    """Refuse unsupported settings that would change the text. Raises InputError for formality and for a glossary without the
    source language, Problem 404 for translation memories.
    """
    if glossary_names(body) and not body.source_lang:
        raise InputError("source_lang: name the source language, which a glossary_id needs.")
    if body.formality in ("more", "less"):
        raise InputError(
            "'formality' is not supported for given 'target_lang': no language here has it. Send prefer_more or "
            "prefer_less, which are ignored then."
        )
    if body.translation_memory_id:
        raise no_memory(body.translation_memory_id)


def no_memory(number: str) -> Problem:
    """The error for a request that names a translation memory."""
    return Problem(404, f"There is no translation memory {number[:80]}. Give a project your translations as samples instead.")


def named(deps: Deps, request: Request, selection: Selection, body: DeepLRequest) -> Selection:
    """The project and plugin of a request: from its address, else (for the plugin) style or glossary, else headers. Raises
    Problem 404 for a missing glossary.
    """
    project = selection.project or request.headers.get("x-tailormt-project", "")
    glossary_ids = {glossary.id for glossary in glossaries_of(deps, body)}
    plugin_names = [name for name in glossary_names(body) if name not in glossary_ids]
    row = deps.find_project(project) if project else None
    for name in plugin_names:
        try:
            deps.find_plugin(plugin_named(name), row)
        except (NotFoundError, Problem):
            raise Problem(404, f"There is no glossary {name[:80]}.") from None
    names = [selection.plugin, body.style_id.strip(), *plugin_names, request.headers.get("x-tailormt-plugin", "").strip()]
    return Selection(project, plugin_named(next(filter(None, names), "")))


def route_of(deps: Deps, selection: Selection, body: DeepLRequest, sample: str = "") -> Route:
    """The route of a request. Raises the errors of `Deps.route`, with DeepL's wording if a language is not supported."""
    try:
        return deps.route(body.source_lang, body.target_lang, selection.project, selection.plugin, sample)
    except NotFoundError:
        raise
    except InputError as error:
        directions = deps.directions()
        for index, name, language in ((1, "target_lang", body.target_lang), (0, "source_lang", body.source_lang)):
            if language and not any(same_language(language, pair[index]) for pair in directions):
                raise InputError(f"Value for '{name}' not supported. {error}") from None
        raise


async def run(request: Request, deps: Deps, selection: Selection) -> DeepLTranslated:
    sent = await admit(request, "auth_key", LISTS)
    body = sent.read(DeepLRequest)
    check_length(body.text)
    check_offered(body)
    sample = "\n".join(body.text[:20])
    selection = await run_in_threadpool(named, deps, request, selection, body)
    more = {"model_type_used": body.model_type.removeprefix("prefer_")} if body.model_type else {}

    def deepl_text(language: str, text: str, billed: int) -> DeepLText:
        count = billed if body.show_billed_characters else None
        return DeepLText(detected_source_language=language, text=text, billed_characters=count, **more)

    if language := await run_in_threadpool(already_in, deps, selection, body.source_lang, body.target_lang, sample):
        return DeepLTranslated(translations=[deepl_text(source_spelt(language), text, 0) for text in body.text])
    route = await run_in_threadpool(route_of, deps, selection, body, sample)
    terms = await run_in_threadpool(terms_of, deps, body, route)
    # DeepL's default: with tags, line breaks are layout and do not end sentences.
    split = body.split_sentences or ("nonewlines" if body.tag_handling else "1")
    tags = {name: tuple(getattr(body, name)) for name in TAGS} | {"outline": body.outline_detection}
    markup = Markup(body.tag_handling or "text", split, tags)
    translations = await translated(request, deps, sent.caller, route, route.work(terms=terms), body.text, markup)
    return DeepLTranslated(
        translations=[
            deepl_text(source_spelt(route.source), text, len(source)) for source, text in zip(body.text, translations, strict=True)
        ]
    )


@cat_routes.post("/v2/translate", openapi_extra=body_schema(DeepLRequest), response_model_exclude_none=True)
async def translate(request: Request, deps: DepsDep, selection: SelectionDep) -> DeepLTranslated:
    """Translate one or more texts."""
    return await run(request, deps, selection)


@cat_routes.api_route("/v2/write", methods=ANY, include_in_schema=False)
@cat_routes.api_route("/v2/write/{operation:path}", methods=ANY, include_in_schema=False)
async def write(request: Request) -> None:
    """DeepL Write, which is not available here."""
    await admit(request, "auth_key", LISTS)
    raise Problem(404, "Rewriting of texts is not available here. Translate with /v2/translate.")


# -- languages and usage


ASKED = {
    "parameters": [{"name": "type", "in": "query", "schema": {"type": "string", "enum": ["source", "target"], "default": "source"}}]
}


@cat_routes.post("/v2/languages", include_in_schema=False, response_model_exclude_none=True)
@cat_routes.get("/v2/languages", openapi_extra=ASKED, response_model_exclude_none=True)
async def list_languages(request: Request, deps: DepsDep, selection: SelectionDep) -> list[DeepLLanguage]:
    """The source languages or, with type=target, the target languages; for a project in the address, only its language."""
    sent = await admit(request, "auth_key")
    if selection.project:
        row = await run_in_threadpool(deps.find_project, selection.project)
        directions = [(row.source, row.target)]
    else:
        directions = await run_in_threadpool(deps.directions)
    return await run_in_threadpool(spoken, directions, sent.values.get("type", "source"))


def spoken(directions: list[tuple[str, str]], side: Any) -> list[DeepLLanguage]:
    if side not in ("source", "target"):
        raise InputError("type: it is source or target.")
    index = ("source", "target").index(side)
    names: dict[str, str] = {}
    for pair in directions:
        name = language_name(pair[index])
        spellings = (source_spelt(pair[0]),) if side == "source" else VARIANTS.get(pair[1], (pair[1].upper(),))
        for code in spellings:
            names.setdefault(code, name if len(spellings) == 1 or "-" not in code else f"{name} ({code[3:]})")
    formality = False if side == "target" else None
    return [DeepLLanguage(language=code, name=name, supports_formality=formality) for code, name in sorted(names.items())]


@cat_routes.post("/v2/usage", include_in_schema=False)
@cat_routes.get("/v2/usage")
async def usage(request: Request, deps: DepsDep) -> Usage:
    """The characters translated with this token this month, and its quota; without a token, those since the studio started."""
    token = (await admit(request, "auth_key")).caller.token
    if token is None:
        return Usage(character_count=deps.characters, character_limit=UNLIMITED)
    return Usage(character_count=token.this_month, character_limit=token.quota or UNLIMITED)


# -- plugins as style rules and glossaries


def moment(when: datetime.datetime) -> str:
    return when.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def is_named(row: PluginRow, name: str) -> bool:
    """Whether the name is this plugin's id in DeepL's format or its number."""
    return name in (plugin_id(row.id), str(row.id))


async def plugins(request: Request, deps: Deps, project: str) -> list[tuple[PluginRow, str, str]]:
    """The available plugins, of the project if one is named, with their source and target languages."""
    await admit(request, "auth_key")

    def find() -> list[tuple[PluginRow, str, str]]:
        number = deps.find_project(project).id if project else None
        projects = {row.id: row for row in deps.store.projects.list()}
        rows = [row for row in deps.store.plugins.list(number) if row.exists and row.project_id in projects]
        return [(row, projects[row.project_id].source, projects[row.project_id].target) for row in rows]

    return await run_in_threadpool(find)


mount(cat_routes, router)

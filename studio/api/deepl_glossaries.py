"""Glossaries in the DeepL API: /v2 with one language pair, /v3 with several. `glossary_id` in a translation enforces the terms.
The /v2 list also includes the plugins, which a client can select in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from engine.core.json_object import Json
from engine.core.languages import canonical
from engine.errors import InputError
from engine.store import PluginRow
from studio.api.cat_tools import Named, SelectionDep, Sent, admit, mount
from studio.api.deepl import ANSWERS, is_named, moment, plugin_id, plugins, source_spelt
from studio.api.deps import Deps, DepsDep
from studio.api.errors import Problem
from studio.api.form_or_json import Values, body_schema
from studio.services.glossaries import Dictionary, Glossaries, Glossary, parse_entries

router = APIRouter(tags=["DeepL"], responses=ANSWERS)
cat_routes = APIRouter()  # also for a project or plugin in the address
TSV = "text/tab-separated-values"
IN_FORM = re.compile(r"dictionaries\[([0-9]{1,4})\]\.(\w{1,40})")


class DictionaryRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    source_lang: str = Field(min_length=2, max_length=35, examples=["EN"])
    target_lang: str = Field(min_length=2, max_length=35, examples=["ZH"])
    entries: str = Field(max_length=2_000_000, examples=["rain\t雨"])
    entries_format: Literal["tsv", "csv"] = "tsv"

    def to_dictionary(self) -> Dictionary:
        return Dictionary(
            canonical(self.source_lang), canonical(self.target_lang), parse_entries(self.entries, self.entries_format)
        )


class GlossaryRequest(DictionaryRequest):
    name: str = Field(max_length=1_024)
    auth_key: str = Field("", max_length=200)


class GlossariesRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str = Field(max_length=1_024)
    dictionaries: list[DictionaryRequest] = Field(min_length=1, max_length=100)


class ChangeRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str | None = Field(None, max_length=1_024)
    dictionaries: list[DictionaryRequest] = Field([], max_length=100)


class PairRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    source_lang: str = Field(min_length=2, max_length=35)
    target_lang: str = Field(min_length=2, max_length=35)


def each_once(requested: Sequence[DictionaryRequest]) -> list[Dictionary]:
    """The dictionaries of a request. Raises InputError if two have the same languages, since one of them would be lost."""
    dictionaries: list[Dictionary] = []
    for request in requested:
        new = request.to_dictionary()
        if any(old.is_for(new.source, new.target) for old in dictionaries):
            raise InputError(
                f"dictionaries: the languages {new.source} to {new.target} occur twice. Put their entries into one dictionary."
            )
        dictionaries.append(new)
    return dictionaries


def admitted(scope: str) -> Any:
    """A dependency on the values of a request whose caller has the scope. Raises the errors of `admit`."""

    async def sent_by(request: Request) -> Sent:
        sent = await admit(request, "auth_key", scope=scope)
        return replace(sent, values=listed(sent.values))

    return Depends(sent_by)


def listed(values: Values) -> Values:
    """The values with form fields `dictionaries[0].…`, as sent by DeepL's Java and .NET libraries, turned into a list."""
    fields = [(match, value) for name, value in values.items() if (match := IN_FORM.fullmatch(name))]
    if not fields:
        return values
    dictionaries: dict[int, Values] = {}
    for match, value in fields:
        dictionaries.setdefault(int(match[1]), {})[match[2]] = value
    remaining = {name: value for name, value in values.items() if not IN_FORM.fullmatch(name)}
    return remaining | {"dictionaries": [dictionary for _, dictionary in sorted(dictionaries.items())]}


Reads, Writes = admitted("translate"), admitted("write")


def v2_plugin(row: PluginRow, source: str, target: str) -> Json:
    return {"glossary_id": plugin_id(row.id), "name": row.name, "ready": True, "creation_time": moment(row.created),
            **_languages(source, target, 0)}  # fmt: skip


def v2_glossary(glossary: Glossary, dictionary: Dictionary) -> Json:
    return {"glossary_id": glossary.id, "name": glossary.name, "ready": True, "creation_time": moment(glossary.made),
            **_languages(dictionary.source, dictionary.target, len(dictionary.entries))}  # fmt: skip


def v3_glossary(glossary: Glossary) -> Json:
    return {
        "glossary_id": glossary.id, "name": glossary.name, "creation_time": moment(glossary.made),
        "dictionaries": [
            _languages(dictionary.source, dictionary.target, len(dictionary.entries)) for dictionary in glossary.dictionaries
        ],
    }  # fmt: skip


def _languages(source: str, target: str, count: int) -> Json:
    return {"source_lang": source_spelt(source).lower(), "target_lang": source_spelt(target).lower(), "entry_count": count}


def one_pair(deps: Deps, number: str) -> tuple[Glossary, Dictionary]:
    """A glossary and its only dictionary, for /v2. Raises NotFoundError, InputError if it has several language pairs."""
    glossary = Glossaries(deps.service).get(number)
    if len(glossary.dictionaries) != 1:
        raise InputError(f"The glossary {glossary.name[:80]} is of several pairs of languages. Ask for it with /v3.")
    return glossary, glossary.dictionaries[0]


# -- /v2: one language pair


@cat_routes.get("/v2/glossaries")
async def list_glossaries(request: Request, deps: DepsDep, selection: SelectionDep) -> Json:
    """The glossaries with one language pair, and the plugins (of the project, if any), which are selected in the same way."""
    listing = [v2_plugin(*plugin) for plugin in await plugins(request, deps, selection.project)]
    glossaries = await run_in_threadpool(Glossaries(deps.service).list)
    listing += [v2_glossary(glossary, glossary.dictionaries[0]) for glossary in glossaries if len(glossary.dictionaries) == 1]
    return {"glossaries": listing}


@cat_routes.post("/v2/glossaries", status_code=201, openapi_extra=body_schema(GlossaryRequest))
def create_glossary(deps: DepsDep, sent: Annotated[Sent, Writes]) -> Json:
    """Create a glossary with one language pair."""
    body = sent.read(GlossaryRequest)
    glossary = Glossaries(deps.service).create(body.name, [body.to_dictionary()])
    return v2_glossary(glossary, glossary.dictionaries[0])


@cat_routes.get("/v2/glossaries/{glossary}")
async def get_glossary(request: Request, deps: DepsDep, selection: SelectionDep, glossary: Named) -> Json:
    """A glossary, or a plugin listed as one."""
    for row, source, target in await plugins(request, deps, selection.project):
        if is_named(row, glossary):
            return v2_plugin(row, source, target)
    return v2_glossary(*await run_in_threadpool(one_pair, deps, glossary))


@cat_routes.get("/v2/glossaries/{glossary}/entries", response_class=Response,
            responses={200: {"content": {TSV: {}}, "description": "A line for each entry."}})  # fmt: skip
async def get_entries(request: Request, deps: DepsDep, selection: SelectionDep, glossary: Named) -> Response:
    """The entries of a glossary as lines of source term, tab, target term. A plugin listed as a glossary has none."""
    listed = await plugins(request, deps, selection.project)
    if any(is_named(row, glossary) for row, *_ in listed):
        return Response("", media_type=TSV)
    _, dictionary = await run_in_threadpool(one_pair, deps, glossary)
    return Response(dictionary.tsv, media_type=TSV)


@cat_routes.delete("/v2/glossaries/{glossary}", status_code=204, dependencies=[Writes])
@cat_routes.delete("/v3/glossaries/{glossary}", status_code=204, dependencies=[Writes])
def delete_glossary(deps: DepsDep, glossary: Named) -> None:
    """Delete a glossary. Plugins can only be deleted in the studio."""
    Glossaries(deps.service).delete(glossary)


@cat_routes.get("/v2/glossary-language-pairs", dependencies=[Reads])
def glossary_pairs(deps: DepsDep) -> Json:
    """The language pairs that are supported for translation and glossaries."""
    pairs = {(source_spelt(a).lower(), source_spelt(b).lower()) for a, b in deps.directions()}
    return {"supported_languages": [{"source_lang": a, "target_lang": b} for a, b in sorted(pairs)]}


# -- /v3: several language pairs


@cat_routes.get("/v3/glossaries", dependencies=[Reads])
def list_glossaries_v3(deps: DepsDep) -> Json:
    """The glossaries with their language pairs."""
    return {"glossaries": [v3_glossary(glossary) for glossary in Glossaries(deps.service).list()]}


@cat_routes.post("/v3/glossaries", status_code=201, openapi_extra=body_schema(GlossariesRequest))
def create_glossary_v3(deps: DepsDep, sent: Annotated[Sent, Writes]) -> Json:
    """Create a glossary with one or more language pairs."""
    body = sent.read(GlossariesRequest)
    return v3_glossary(Glossaries(deps.service).create(body.name, each_once(body.dictionaries)))


@cat_routes.get("/v3/glossaries/{glossary}", dependencies=[Reads])
def get_glossary_v3(deps: DepsDep, glossary: Named) -> Json:
    """A glossary with its language pairs."""
    return v3_glossary(Glossaries(deps.service).get(glossary))


@cat_routes.get("/v3/glossaries/{glossary}/entries", dependencies=[Reads])
def get_entries_v3(deps: DepsDep, glossary: Named, source_lang: str = "", target_lang: str = "") -> Json:
    """The entries of a glossary for a language pair or, without languages, for all pairs."""
    result = Glossaries(deps.service).get(glossary)
    dictionaries = [result.dictionary(source_lang, target_lang)] if source_lang or target_lang else result.dictionaries
    return {
        "dictionaries": [
            {
                **_languages(dictionary.source, dictionary.target, len(dictionary.entries)),
                "entries": dictionary.tsv,
                "entries_format": "tsv",
            }
            for dictionary in dictionaries
        ]
    }


@cat_routes.patch("/v3/glossaries/{glossary}", openapi_extra=body_schema(ChangeRequest))
def change_glossary(deps: DepsDep, glossary: Named, sent: Annotated[Sent, Writes]) -> Json:
    """Rename a glossary or add entries; an existing entry with the same source term is replaced."""
    body, glossaries = sent.read(ChangeRequest), Glossaries(deps.service)
    result = glossaries.get(glossary)
    result.name = body.name or result.name
    for new in each_once(body.dictionaries):
        old = next((old for old in result.dictionaries if old.is_for(new.source, new.target)), new)
        result.put(Dictionary(new.source, new.target, {**old.entries, **new.entries}))
    return v3_glossary(glossaries.save(result))


@cat_routes.put("/v3/glossaries/{glossary}/dictionaries", openapi_extra=body_schema(DictionaryRequest))
def put_dictionary(deps: DepsDep, glossary: Named, sent: Annotated[Sent, Writes]) -> Json:
    """Replace all entries of a language pair."""
    new, glossaries = sent.read(DictionaryRequest).to_dictionary(), Glossaries(deps.service)
    result = glossaries.get(glossary)
    result.put(new)
    glossaries.save(result)
    return _languages(new.source, new.target, len(new.entries))


@cat_routes.delete("/v3/glossaries/{glossary}/dictionaries", status_code=204)
def delete_dictionary(deps: DepsDep, glossary: Named, sent: Annotated[Sent, Writes]) -> None:
    """Delete the entries of a language pair. The only pair of a glossary cannot be deleted."""
    body, glossaries = sent.read(PairRequest), Glossaries(deps.service)
    result = glossaries.get(glossary)
    result.dictionaries.remove(result.dictionary(body.source_lang, body.target_lang))
    if not result.dictionaries:
        raise Problem(400, "These are the glossary's only entries. Delete the glossary.")
    glossaries.save(result)


mount(cat_routes, router)

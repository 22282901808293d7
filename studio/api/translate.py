"""/translate: translation of texts with a base and a plugin; /alternatives: other translations of a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from engine.core.flagged import flag_of
from engine.errors import OptionError
from engine.serving.batcher import TranslationSpec
from engine.serving.turns import Ticket
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Route
from studio.api.errors import Problem, too_large
from studio.api.permissions import Caller, may
from studio.api.schemas import translate as bodies
from studio.services.translation import alternatives_of

router = APIRouter(tags=["translate"])
MOST_TEXT = 200_000  # characters of one text
Format = Literal["text", "xml", "html"]


@dataclass(frozen=True)
class Markup:
    """The markup format and sentence splitting of texts; `tags` are settings of `engine.corpora.formats.markup.TaggedMarkup`."""

    format: Format = "text"
    split: str = "1"
    tags: Mapping[str, Any] = field(default_factory=dict)


def check_length(texts: Sequence[str]) -> None:
    """Raises Problem 413 if a text has more than MOST_TEXT characters."""
    if any(len(text) > MOST_TEXT for text in texts):
        raise Problem(413, too_large(MOST_TEXT))


async def translated(
    request: Request, deps: Deps, caller: Caller, route: Route, work: TranslationSpec, texts: Sequence[str], markup: Markup
) -> list[str]:
    """Translate texts, preserving lines, white space and tags. `work` belongs to the route.

    CAT tools send their short tags (<g1>, <x2/>) in texts declared as plain; these are kept too. Raises Problem or a
    TailorError.
    """
    check_length(texts)

    def run(ticket: Ticket) -> list[str]:
        from engine.corpora.formats.markup import TaggedMarkup
        from engine.corpora.formats.markup_parser import has_short_tags
        from engine.corpora.formats.plain_layout import PlainTextLayout

        if markup.format != "text":
            cut: PlainTextLayout | TaggedMarkup = TaggedMarkup(texts, markup.format, markup.split, **markup.tags)
        elif any(map(has_short_tags, texts)):
            cut = TaggedMarkup(texts, "short", markup.split)
        else:
            cut = PlainTextLayout(texts, markup.split)
        with counted(deps, caller, sum(map(len, texts))):
            return cut.join(deps.through(route, work, cut.units, ticket))

    return await deps.run_in_thread(request, run)


@contextlib.contextmanager
def counted(deps: Deps, caller: Caller, characters: int) -> Iterator[None]:
    """Count characters translated or queued in the block; uncount them if it fails. Raises Problem over the token's quota.

    They are counted in advance, so that concurrent requests cannot exceed a quota together. Blocks: call it in a thread.
    """

    def count(number: int) -> None:
        if caller.token is None:
            deps.characters += number
        caller.spend(number)

    count(characters)
    try:
        yield
    except BaseException:
        count(-characters)
        raise


@router.post("/translate")
async def translate(
    request: Request, deps: DepsDep, body: bodies.TranslateRequest, caller: Annotated[Caller, may("translate")]
) -> bodies.Translated:
    """Translate texts, with one result per text. Lines and white space are preserved.

    A named plugin takes precedence; else a named project with its default plugin; else the most recently changed project with
    these languages and its default plugin; else a base for these languages without a plugin.
    """
    route = await run_in_threadpool(
        deps.route, body.source or "", body.target or "", body.project or "", body.plugin, "\n".join(body.texts[:20])
    )
    terms = await run_in_threadpool(deps.terms, route) if body.terminology else ""
    translations = await translated(
        request, deps, caller, route, route.work(body.strength, body.decoding, terms), body.texts, Markup(body.format)
    )
    read: Sequence[Any] = [None] * len(translations)
    if body.reads:
        if body.format != "text":
            raise OptionError("reads: what was read is told of plain texts alone. Leave format at text.")
        pairs = list(zip(body.texts, translations, strict=True))
        read = await deps.run_in_thread(request, lambda ticket: deps.attributions(route, pairs, body.top, ticket))
    return bodies.Translated(
        translations=[
            bodies.Reading(text=text, flag=flag_of(text), reads=entries) for text, entries in zip(translations, read, strict=True)
        ],
        source=route.source,
        target=route.target,
        base=rows.base_name(route.base),
        project=route.project.id if route.project else None,
        plugin=route.plugin.id if route.plugin else None,
    )


@router.post("/alternatives")
async def alternatives(
    request: Request, deps: DepsDep, body: bodies.AlternativesRequest, caller: Annotated[Caller, may("translate")]
) -> bodies.AlternativesFound:
    """Alternative translations of a sentence: the best of its beam that begin with the prefix, and words that could follow it."""
    route = await run_in_threadpool(deps.route, body.source or "", body.target or "", body.project or "", body.plugin, body.text)

    def run(ticket: Ticket) -> bodies.AlternativesFound:
        base = deps.service.models.base(route.base, route.source, route.target)
        with counted(deps, caller, len(body.text)):
            result = alternatives_of(deps.service, base, route.plugin, body.strength, body.text, body.prefix, body.count)
        return bodies.AlternativesFound(sentences=result.sentences, words=[bodies.Word(**vars(word)) for word in result.words])

    return await deps.run_in_thread(request, run)

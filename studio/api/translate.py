"""/translate: texts by a project's base, with a plugin at a strength."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from engine.core.flagged import flag_of
from engine.errors import OptionError
from engine.serving.turns import Ticket
from studio.api import serializers as rows
from studio.api.deps import Deps, DeskDep, Route
from studio.api.errors import Problem
from studio.api.permissions import Caller, may
from studio.api.schemas import translate as bodies

router = APIRouter(tags=["translate"])
MOST_TEXT = 200_000  # characters of one text
Format = Literal["text", "xml", "html"]


@dataclass(frozen=True)
class Markup:
    """How texts are marked up and cut; `tags` are the settings of `engine.corpora.formats.markup.TaggedMarkup`."""

    format: Format = "text"
    split: str = "1"
    tags: Mapping[str, Any] = field(default_factory=dict)


async def translated(
    request: Request,
    desk: Deps,
    caller: Caller,
    means: Route,
    texts: Sequence[str],
    markup: Markup,
    *,
    strength: float = 1.0,
    decoding: Mapping[str, Any] | None = None,
    terms: str = "",
) -> list[str]:
    """Translations in the layout of the texts: lines and blank space stay, and so do the tags.

    CAT tools send the short tags that they show (<g1>, <x2/>) in texts that they call plain; these are kept too. Raises
    Problem or a TailorError.
    """
    work = means.work(strength, decoding, terms)  # settings are checked before any work
    if any(len(text) > MOST_TEXT for text in texts):
        raise Problem(413, f"A text has more than {MOST_TEXT:,} characters. Send it in parts, or as a document.")

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
        with counted(desk, caller, sum(map(len, texts))):
            return cut.join(desk.through(means, work, cut.units, ticket))

    return await desk.apart(request, run)


@contextlib.contextmanager
def counted(desk: Deps, caller: Caller, characters: int) -> Iterator[None]:
    """Counts what is translated or queued inside, and gives it back where that fails. Raises Problem over the token's quota.

    Before, so that requests at the same time cannot pass a quota together. Waits: for a thread.
    """

    def count(number: int) -> None:
        if caller.token is None:
            desk.characters += number
        caller.spend(number)

    count(characters)
    try:
        yield
    except BaseException:
        count(-characters)
        raise


@router.post("/translate")
async def translate(
    request: Request, desk: DeskDep, wish: bodies.TranslateWish, caller: Annotated[Caller, may("translate")]
) -> bodies.Translated:
    """Translate texts, one result each. Lines and blank space stay as they are.

    A named plugin decides what translates; else a named project and its default plugin; else the project of these languages
    that changed last, with its default plugin; else a base that knows them.
    """
    means = await run_in_threadpool(
        desk.means, wish.source or "", wish.target or "", wish.project or "", wish.plugin, "\n".join(wish.texts[:20])
    )
    terms = await run_in_threadpool(desk.terms, means) if wish.terminology else ""
    translations = await translated(
        request, desk, caller, means, wish.texts, Markup(wish.format), strength=wish.strength, decoding=wish.decoding,
        terms=terms,
    )  # fmt: skip
    read: Sequence[Any] = [None] * len(translations)
    if wish.reads:
        if wish.format != "text":
            raise OptionError("reads: what was read is told of plain texts alone. Leave format at text.")
        pairs = list(zip(wish.texts, translations, strict=True))
        read = await desk.apart(request, lambda ticket: desk.reads(means, pairs, wish.top, ticket))
    return bodies.Translated(
        translations=[
            bodies.Reading(text=text, flag=flag_of(text), reads=one)
            for text, one in zip(translations, read, strict=True)
        ],
        source=means.source,
        target=means.target,
        base=rows.base_name(means.base),
        project=means.project.id if means.project else None,
        plugin=means.plugin.id if means.plugin else None,
    )


@router.post("/alternatives")
async def alternatives(
    request: Request, desk: DeskDep, wish: bodies.AlternativesWish, caller: Annotated[Caller, may("translate")]
) -> bodies.AlternativesFound:
    """Other translations of a sentence: the best of its beam, with a beginning that is kept, and words that could follow."""
    from studio.services.translation import alternatives_of

    means = await run_in_threadpool(
        desk.means, wish.source or "", wish.target or "", wish.project or "", wish.plugin, wish.text
    )

    def run(ticket: Ticket) -> bodies.AlternativesFound:
        base = desk.service.models.base(means.base, means.source, means.target)
        with counted(desk, caller, len(wish.text)):
            found = alternatives_of(
                desk.service, base, means.plugin, wish.strength, wish.text, wish.prefix, wish.count
            )  # fmt: skip
        return bodies.AlternativesFound(
            sentences=found.sentences, words=[bodies.Word(**vars(one)) for one in found.words]
        )

    return await desk.apart(request, run)

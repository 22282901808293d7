"""/translate: texts by a project's base, with a plugin at a strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from engine.errors import OptionError
from studio.api import bodies, rows
from studio.api.auth import Caller, may
from studio.api.desk import Desk, DeskDep, Means

__all__ = ["Format", "count", "router", "translated"]

router = APIRouter(tags=["translate"])
Format = Literal["text", "xml", "html"]


async def translated(
    desk: Desk,
    caller: Caller,
    means: Means,
    texts: Sequence[str],
    *,
    kind: Format = "text",
    split: str = "1",
    strength: float = 1.0,
    decoding: Mapping[str, Any] | None = None,
    tags: Mapping[str, Any] | None = None,
) -> list[str]:
    """Translations in the layout of the texts: lines and blank space stay, tags are kept where `kind` says that there are any.

    CAT tools send the short tags that they show (<g1>, <x2/>) in texts that they call plain; these are kept too. `tags` are
    the settings of `engine.markup.Markup`. Raises Problem or a TailorError.
    """
    work = means.work(strength, decoding)  # settings are checked before any work

    def run() -> list[str]:
        from engine.layout import Layout
        from engine.markup import Markup
        from engine.tagged import has_short_tags

        if kind != "text":
            cut: Layout | Markup = Markup(texts, kind, split, **(tags or {}))
        elif any(map(has_short_tags, texts)):
            cut = Markup(texts, "short", split)
        else:
            cut = Layout(texts, split)
        return cut.join(desk.through(means, work, cut.units))

    found = await desk.apart(run)
    await run_in_threadpool(count, desk, caller, sum(map(len, texts)))
    return found


def count(desk: Desk, caller: Caller, characters: int) -> None:
    if caller.token is None:
        desk.characters += characters
    caller.translated(characters)


@router.post("/translate")
async def translate(
    desk: DeskDep, wish: bodies.TranslateWish, caller: Annotated[Caller, may("translate")]
) -> bodies.Translated:
    """Translate texts, one result each. Lines and blank space stay as they are.

    A named plugin decides what translates; else a named project and its default plugin; else the project of these languages
    that changed last, with its default plugin; else a base that knows them.
    """
    means = await run_in_threadpool(
        desk.means, wish.source or "", wish.target or "", wish.project or "", wish.plugin, "\n".join(wish.texts[:20])
    )
    found = await translated(
        desk, caller, means, wish.texts, kind=wish.format, strength=wish.strength, decoding=wish.decoding
    )
    read: Sequence[Any] = [None] * len(found)
    if wish.reads:
        if wish.format != "text":
            raise OptionError("reads: what was read is told of plain texts alone. Leave format at text.")
        read = await run_in_threadpool(desk.reads, means, list(zip(wish.texts, found, strict=True)), wish.top)
    return bodies.Translated(
        translations=[bodies.Reading(text=text, reads=one) for text, one in zip(found, read, strict=True)],
        source=means.source,
        target=means.target,
        base=rows.base_name(means.base),
        project=means.project.id if means.project else None,
        plugin=means.plugin.id if means.plugin else None,
    )

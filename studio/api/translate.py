"""/translate: texts by a project's base, with a plugin at a strength; and /comparisons, which keep such texts side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool

from engine.errors import OptionError
from studio.api import bodies, models, rows
from studio.api.auth import Caller, may
from studio.api.desk import Desk, DeskDep, Id, Limit, Means, Offset
from studio.api.errors import Problem

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


# -- comparisons


@router.get("/projects/{number}/comparisons", dependencies=[may("read")], tags=["comparisons"])
def list_comparisons(
    desk: DeskDep, number: Id, offset: Offset = 0, limit: Limit = 100
) -> models.Page[bodies.Comparison]:
    """A project's saved comparisons, newest first."""
    desk.project(number)
    part = rows.page(desk.service.comparisons(number), offset, limit)
    part["items"] = [bodies.Comparison(**rows.comparison(row)) for row in part["items"]]
    return models.Page[bodies.Comparison](**part)


@router.post("/projects/{number}/comparisons", status_code=201, tags=["comparisons"])
async def compare(
    desk: DeskDep, number: Id, wish: bodies.ComparisonWish, caller: Annotated[Caller, may("translate")]
) -> bodies.ComparisonMade:
    """Translate sentences with the base and with a plugin, and keep both side by side; the page Compare shows them."""
    texts = [" ".join(text.split()) for text in wish.texts]
    if not any(texts):
        raise Problem(422, "texts: at least one of them must say something.", code="invalid")
    texts = [text for text in texts if text]
    project = await run_in_threadpool(desk.project, number)
    means = await run_in_threadpool(desk.means, "", "", str(number), wish.plugin)
    vanilla = await desk.translate(Means(project.base, project.source, project.target, project), texts)
    customized: Sequence[str | None] = [None] * len(texts)
    more: dict[str, Any] = {}
    if means.plugin is not None:
        customized = await desk.translate(means, texts, wish.strength)
        more = {"plugin_id": means.plugin.id, "plugin": means.plugin.name, "method": means.plugin.method,
                "strength": wish.strength}  # fmt: skip
    await run_in_threadpool(count, desk, caller, sum(map(len, texts)) * (2 if means.plugin else 1))
    made = [
        {"source": text, "vanilla": before, "customized": after} | more
        for text, before, after in zip(texts, vanilla, customized, strict=True)
    ]
    title = wish.title.strip() or texts[0][:60]
    row = await run_in_threadpool(desk.service.store.comparisons.create, number, title, made)
    changed = sum(one["customized"] not in (None, one["vanilla"]) for one in made)
    return bodies.ComparisonMade(**rows.comparison(row), rows=row.rows, changed=changed)


@router.get("/comparisons/{number}", dependencies=[may("read")], tags=["comparisons"])
def get_comparison(desk: DeskDep, number: Id) -> bodies.ComparisonRows:
    """One comparison with its sentences."""
    row = desk.comparison(number)
    return bodies.ComparisonRows(**rows.comparison(row), rows=[rows.finite(one) for one in row.rows])


@router.get("/comparisons/{number}/lines", dependencies=[may("read")], tags=["comparisons"])
def list_lines(
    desk: DeskDep,
    number: Id,
    offset: Offset = 0,
    limit: Limit = 100,
    order: Literal["place", "difference", "better", "worse"] = "place",
) -> bodies.Lines:
    """Its sentences, paged: as given, most different first, or largest gain or loss of score first."""
    desk.comparison(number)
    sheet = desk.service.store.sheets.get(number)
    found = desk.service.store.sheets.page(number, order, offset, limit)
    systems = [bodies.System.model_validate(dict(one)) for one in sheet.systems]
    lines = [rows.finite({key: getattr(one, key) for key in bodies.Line.model_fields}) for one in found]
    return bodies.Lines(
        systems=systems,
        figures=rows.finite(sheet.figures),
        items=[bodies.Line(**line) for line in lines],
        total=sheet.lines,
        offset=offset,
    )


@router.delete("/comparisons/{number}", status_code=204, dependencies=[may("write")], tags=["comparisons"])
def delete_comparison(desk: DeskDep, number: Id) -> Response:
    """Remove a comparison."""
    desk.comparison(number)
    desk.service.store.comparisons.delete(number)
    return Response(status_code=204)

"""/comparisons: translations of the base and up to three plugins side by side, with metrics, memory readings and export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, Path, Query, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse

from engine.core.flagged import flag_of
from engine.core.step_cache import content_hash
from engine.serving.turns import Ticket
from engine.store import ProjectRow
from engine.store.comparisons import ComparisonRecord
from engine.workflows.compare.attribution import WordAttribution
from engine.workflows.compare.export import FORMATS, content_of, write
from engine.workflows.compare.export.content import flags_of
from engine.workflows.compare.input import read_sentences
from engine.workflows.compare.metric_rows import figure_rows
from engine.workflows.compare.systems import systems_of
from studio.api import serializers as rows
from studio.api.deps import Deps, DepsDep, Id, Limit, Offset, ProjectDep, Route, reads_files
from studio.api.errors import Problem, conflicts, json_field
from studio.api.permissions import Caller, may
from studio.api.schemas import models
from studio.api.schemas.comparisons import (
    Comparison,
    ComparisonChange,
    ComparisonMade,
    ComparisonQueued,
    ComparisonRequest,
    ComparisonRows,
    Figure,
    Line,
    Lines,
    MemoryRead,
    SheetRequest,
    StrengthRequest,
    System,
    SystemRequest,
    Terms,
    TermsRequest,
    WordCandidate,
    WordReading,
)
from studio.api.translate import counted
from studio.api.uploads import sent_once, stored_uploads
from studio.services import terminology
from studio.services.comparisons import Comparisons
from studio.services.terminology import enforced_terms, project_terms

router = APIRouter(tags=["comparisons"])
Format = Literal["xlsx", "tmx", "html", "json"]
Position = Annotated[int, Path(ge=0, le=10**6, description="From 0.")]


def to_response(deps: Deps, sheet: ComparisonRecord) -> Comparison:
    done, different = deps.store.sheets.count(sheet.comparison_id)
    return rows.from_row(
        Comparison, sheet, id=sheet.comparison_id, project=sheet.project_id, sentences=sheet.lines, translated=done,
        different=different, systems=[System.model_validate(dict(system)) for system in sheet.systems], job=sheet.job_id,
        terminology=bool(sheet.systems[0].get("enforced")),
    )  # fmt: skip


# -- creating and listing


@router.get("/projects/{number}/comparisons", dependencies=[may("read")])
def list_comparisons(deps: DepsDep, project: ProjectDep, offset: Offset = 0, limit: Limit = 100) -> models.Page[Comparison]:
    """A project's comparisons, newest first."""
    sheets = deps.store.sheets
    titles = sheets.titles(project.id, limit=10_000)
    return rows.page(models.Page[Comparison], titles, offset, limit, lambda row: to_response(deps, sheets.get(row[0])))


@router.post("/projects/{number}/comparisons", status_code=201)
async def compare(
    request: Request, deps: DepsDep, number: Id, body: ComparisonRequest, caller: Annotated[Caller, may("translate")]
) -> ComparisonMade:
    """Translate a few sentences immediately with the base and with a plugin, and store both translations."""
    texts = nonempty_texts(body.texts)
    project = await run_in_threadpool(deps.store.projects.get, number)
    route = await run_in_threadpool(deps.route, "", "", str(number), body.plugin)
    alone = Route(project.base, project.source, project.target, project)
    terms = await run_in_threadpool(deps.terms, alone) if body.terminology else ""

    def plain(through: Route, strength: float, ticket: Ticket) -> list[str]:
        with counted(deps, caller, sum(map(len, texts))):
            return deps.plain(through, texts, ticket, strength, terms)

    vanilla = await deps.run_in_thread(request, lambda ticket: plain(alone, 1.0, ticket))
    customized: Sequence[str | None] = [None] * len(texts)
    more: dict[str, object] = {"enforced": content_hash(terms)} if terms else {}
    if route.plugin is not None:
        customized = await deps.run_in_thread(request, lambda ticket: plain(route, body.strength, ticket))
        more |= {"plugin_id": route.plugin.id, "plugin": route.plugin.name, "method": route.plugin.method,
                 "strength": body.strength}  # fmt: skip
    lines = [
        {"source": text, "vanilla": before, "customized": after, **flag_fields(before, after)} | more
        for text, before, after in zip(texts, vanilla, customized, strict=True)
    ]
    title = body.title.strip() or texts[0][:60]
    row = await run_in_threadpool(deps.store.comparisons.create, number, title, lines)
    changed = sum(line["customized"] not in (None, line["vanilla"]) for line in lines)
    comparison = await run_in_threadpool(lambda: to_response(deps, deps.store.sheets.get(row.id)))
    return ComparisonMade(**dict(comparison), rows=row.rows, changed=changed)


def flag_fields(vanilla: str, customized: str | None) -> dict[str, dict[str, str]]:
    """The `flags` of a row, if any: {"vanilla": "repetition-repaired"}."""
    flags = {name: flag_of(text) for name, text in (("vanilla", vanilla), ("customized", customized)) if flag_of(text)}
    return {"flags": flags} if flags else {}


def nonempty_texts(texts: Sequence[str]) -> list[str]:
    results = [" ".join(text.split()) for text in texts]
    if not any(results):
        raise Problem(422, "texts: at least one of them must say something.", code="invalid")
    return [text for text in results if text]


@router.post("/projects/{number}/comparisons/sheets", status_code=202)
def compare_many(
    deps: DepsDep, body: SheetRequest, caller: Annotated[Caller, may("translate")], project: ProjectDep
) -> ComparisonQueued:
    """Queue a comparison of the base with up to three plugins. A job translates the texts and computes metrics, with
    references if they are given.
    """
    if body.references is not None and len(body.references) != len(body.texts):
        raise Problem(422, f"references: {len(body.references)} for {len(body.texts)} texts. Give one per text.")
    pairs = zip(body.texts, body.references or [""] * len(body.texts), strict=True)
    lines = [(" ".join(text.split()), " ".join(other.split()) or None) for text, other in pairs if text.strip()]
    if not lines:
        raise Problem(422, "texts: at least one of them must say something.", code="invalid")
    return queued(deps, project, lines, body.systems, body.title.strip() or lines[0][0][:60], "", caller, body.terminology)


@router.post("/projects/{number}/comparisons/files", status_code=202)
@reads_files
def compare_files(
    deps: DepsDep,
    caller: Annotated[Caller, may("translate")],
    project: ProjectDep,
    files: Annotated[
        list[UploadFile], File(description="One file, also with references (TMX, XLIFF, PO, tables); or two texts, line by line.")
    ],
    systems: Annotated[str, Form(max_length=4000, description='Plugins as JSON: [{"plugin": "3", "strength": 0.8}].')] = "",
    title: Annotated[str, Form(max_length=120)] = "",
    terminology: Annotated[bool, Form(description="Enforce the terms of the project.")] = False,
) -> ComparisonQueued:
    """Queue a comparison of the sentences of one file, or of two files: sentences and their references."""
    requested = requested_systems(systems)
    with stored_uploads(deps.service.settings, files) as paths:
        result = read_sentences(paths, project.source, project.target, apart=True)
    name = files[0].filename or "file"
    response = queued(deps, project, result.lines, requested, title.strip() or name, name, caller, terminology)
    return response.model_copy(update={"notes": result.notes})


def requested_systems(text: str) -> list[SystemRequest]:
    why = 'systems: a JSON list is needed, as [{"plugin": "3", "strength": 0.8}].'
    result: list[SystemRequest] = json_field(text, list[SystemRequest], why) or []
    if len(result) > 3:
        raise Problem(422, "systems: up to three plugins stand side by side.")
    return result


def queued(
    deps: Deps, project: ProjectRow, lines: Sequence[tuple[str, str | None]], requested: Sequence[SystemRequest], title: str,
    file: str, caller: Caller, enforce: bool,
) -> ComparisonQueued:  # fmt: skip
    if requested:
        named = [(deps.find_plugin(system.plugin, project), system.strength) for system in requested]
    else:
        named = [(deps.store.defaults.get(project.id), 1.0)]
    chosen = [(row, strength) for row, strength in named if row is not None]
    enforced = enforced_terms(deps.service, project, enforce=enforce)
    systems = systems_of([row for row, _ in chosen], [strength for _, strength in chosen], enforced)
    with counted(deps, caller, sum(len(text) for text, _ in lines) * len(systems)):
        sheet = deps.store.sheets.create(project.id, title, lines, systems, file=file)
        job = enqueued(deps, sheet)
    comparison = to_response(deps, deps.store.sheets.get(sheet.comparison_id))
    return ComparisonQueued(comparison=comparison, job=job, notes=[])


def enqueued(deps: Deps, sheet: ComparisonRecord) -> models.Job:
    """The job that translates and measures a comparison; a queued or running one is returned instead of a new one."""
    return rows.job(Comparisons(deps.service).enqueue(sheet))


@router.get("/projects/{number}/terms", dependencies=[may("read")])
def get_terms(deps: DepsDep, project: ProjectDep) -> Terms:
    """The terms that a project's translations should use. They are counted when a comparison is measured, and enforced if a
    request sets `terminology`.
    """
    return Terms(text=project_terms(deps.service, project))


@router.put("/projects/{number}/terms", dependencies=[may("write")])
def set_terms(deps: DepsDep, project: ProjectDep, body: TermsRequest) -> Terms:
    """Replace the terms. Each line is a target term, or a source term, a tab or =, and a target term."""
    terminology.set_terms(deps.service, project, body.text)
    return Terms(text=body.text)


@router.post("/projects/{number}/terms/file", dependencies=[may("write")])
@reads_files
def import_terms(
    deps: DepsDep, project: ProjectDep, file: Annotated[UploadFile, File(description="TBX, CSV, or lines of text.")]
) -> Terms:
    """Replace the terms with those of a file; from TBX, those in the project's languages."""
    with stored_uploads(deps.service.settings, [file]) as paths:
        text = terminology.read_file(project, paths[0])
    terminology.set_terms(deps.service, project, text)
    return Terms(text=text)


# -- a single comparison


@router.get("/comparisons/{number}", dependencies=[may("read")])
def get_comparison(deps: DepsDep, number: Id) -> ComparisonRows:
    """A comparison with the translations of the base and the first plugin; for further plugins, get its lines."""
    row = deps.store.comparisons.get(number)
    return ComparisonRows(**dict(to_response(deps, deps.store.sheets.get(number))), rows=[rows.finite(line) for line in row.rows])


@router.patch("/comparisons/{number}", dependencies=[may("write")])
def change_comparison(deps: DepsDep, number: Id, change: ComparisonChange) -> Comparison:
    """Change the title of a comparison, or mark it as kept, so that it stays unchanged when its address is shared."""
    deps.store.sheets.get(number)
    selected = {} if change.kept is None else {"kept": change.kept}
    return to_response(deps, deps.store.sheets.update(number, title=change.title or "", **selected))


@router.delete("/comparisons/{number}", status_code=204, dependencies=[may("write")])
def delete_comparison(deps: DepsDep, number: Id) -> Response:
    """Delete a comparison."""
    deps.store.comparisons.delete(number)
    return Response(status_code=204)


@router.post("/comparisons/{number}/measure", status_code=202, dependencies=[may("translate")])
def measure(deps: DepsDep, number: Id) -> models.Job:
    """Queue the job that makes the missing translations and computes metrics, unless it is already queued or running."""
    return enqueued(deps, deps.store.sheets.get(number))


@router.put("/comparisons/{number}/systems/{place}", dependencies=[may("write")])
def set_strength(deps: DepsDep, number: Id, place: Position, body: StrengthRequest) -> Comparison:
    """Set the strength of a plugin; a kept comparison is copied first. Measure the comparison to translate again."""
    sheet = deps.store.sheets.get(number)
    if not 0 < place < len(sheet.systems):
        raise Problem(404, f"Comparison {number} has no plugin at place {place}. Place 0 is the base alone.")
    with conflicts():
        turned = Comparisons(deps.service).set_strength(deps.store.projects.get(sheet.project_id), sheet, place, body.strength)
    return to_response(deps, turned)


@router.get("/comparisons/{number}/lines", dependencies=[may("read")])
def list_lines(
    deps: DepsDep,
    number: Id,
    offset: Offset = 0,
    limit: Limit = 100,
    order: Literal["place", "difference", "better", "worse"] = "place",
) -> Lines:
    """A page of a comparison's sentences, in their original order or sorted by difference, gain or loss of score."""
    sheet = deps.store.sheets.get(number)
    result = deps.store.sheets.page(number, order, offset, limit)
    systems = [System.model_validate(dict(system)) for system in sheet.systems]
    keys = Line.model_fields.keys() - {"flags"}
    lines = [rows.finite({key: getattr(record, key) for key in keys} | {"flags": flags_of(record)}) for record in result]
    return Lines(
        systems=systems,
        figures=rows.finite(sheet.figures),
        items=[Line(**line) for line in lines],
        total=sheet.lines,
        offset=offset,
    )


@router.get("/comparisons/{number}/figures", dependencies=[may("read")])
def list_figures(deps: DepsDep, number: Id) -> list[Figure]:
    """The metrics of a comparison: BLEU, chrF, TER, style classifier, perplexity, terms and COMET where available, and BLEU and
    chrF on general text.
    """
    result = figure_rows(deps.store.sheets.get(number).figures)
    return [Figure(**rows.finite(vars(figure)), title=figure.title) for figure in result]


@router.get("/comparisons/{number}/lines/{place}/reading")
async def read_word(
    request: Request,
    deps: DepsDep,
    number: Id,
    place: Position,
    caller: Annotated[Caller, may("translate")],
    system: Annotated[int, Query(ge=0, le=3, description="Which system, from 0, the base alone.")],
    start: Annotated[int, Query(ge=0, le=100_000, description="The word's first character.")],
    end: Annotated[int, Query(ge=1, le=100_001, description="The character after its last.")],
) -> WordReading:
    """The entries that a system read from memory for a word of its translation."""

    def run(ticket: Ticket) -> WordAttribution:
        sheet = deps.store.sheets.get(number)
        if place >= sheet.lines:
            raise Problem(404, f"Comparison {number} has no line {place}: it has {sheet.lines}.")
        project = deps.store.projects.get(sheet.project_id)
        return Comparisons(deps.service).read(project, sheet, place, system, start, end, ticket)

    result = await deps.run_in_thread(request, run)
    reads = [MemoryRead(**rows.finite(vars(read))) for read in result.reads]
    by_base, by_plugin = (
        [WordCandidate(**vars(candidate)) for candidate in candidates] for candidates in (result.by_base, result.by_plugin)
    )
    return WordReading(
        word=result.word, start=result.start, end=result.end, places=reads, why=result.why, by_base=by_base, by_plugin=by_plugin
    )


@router.get(
    "/comparisons/{number}/export",
    dependencies=[may("read")],
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The comparison as a file."}},
)
def export_comparison(deps: DepsDep, number: Id, format: Annotated[Format, Query()] = "xlsx") -> FileResponse:
    """Export a comparison for a spreadsheet (xlsx), a translation tool (tmx), people (html) or programs (json)."""
    deps.store.sheets.get(number)
    content, ending = content_of(deps.store, number), FORMATS[format].ending
    return sent_once(
        deps.service.settings, ending, lambda path: write(content, path, format), filename=f"comparison-{number}{ending}",
        media_type="application/octet-stream",
    )  # fmt: skip

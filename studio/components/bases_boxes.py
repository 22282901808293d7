"""The parts of the page Bases: bases being added, installed bases, well-known ones; as safe HTML."""

from __future__ import annotations

from markupsafe import Markup

from engine.base.recommend import memory_needed, table_date
from engine.store import ProjectRow
from studio.components.layout import step_text
from studio.components.model_cards import license_line
from studio.components.templating import render
from studio.i18n.translate import day, listed, tr, translate_message
from studio.services.base_models import BaseModels, ShelfBase
from studio.services.catalog import LANGUAGES, language_name, language_pair_text
from studio.services.uploads import paths_offered

FEW = 4  # up to this number, languages are named; more are counted


def jobs_box(models: BaseModels) -> str:
    """The bases being added and those that could not be added."""
    jobs = models.jobs()
    waits = tr("Starts when a worker is free")
    rows = [
        (job, waits if job.state == "queued" else f"{step_text(job)} · {job.note}".rstrip(" ·"), translate_message(job.error))
        for job in jobs
    ]
    return render("bases_adding.html", jobs=rows) if rows else ""


def installed_box(models: BaseModels, project: ProjectRow | None) -> str:
    """The installed bases as cards."""
    bases = models.installed(project)
    accepted = models.service.catalog.accepted
    pairs = {
        (score.source, score.target): language_pair_text(score.source, score.target) if score.source else ""
        for base in bases
        for score in base.scores
    }
    return render(
        "bases_at_hand.html",
        bases=bases,
        project=project,
        pairs=pairs,
        ways={base.name: directions_text(base) for base in bases},
        licences={base.name: Markup(license_line(base.card)) for base in bases},
        asks={base.name: not accepted(base.card, base.path) for base in bases},
        may_change=models.may_change,
    )


def recommended_box(models: BaseModels, source: str, target: str) -> str:
    """Well-known models for a language pair as a table, and the field for another model."""
    codes = dict.fromkeys([*LANGUAGES, source, target])
    return render(
        "bases_known.html",
        rows=models.well_known(source, target),
        source=source,
        target=target,
        languages=sorted(((code, language_name(code)) for code in codes), key=lambda item: item[1]),
        memory=memory_needed,
        day=day(table_date()),
        paths=paths_offered(models.service.settings),
        may_change=models.may_change,
        busy=bool(models.jobs()),
    )


def directions_text(base: ShelfBase) -> str:
    """Which languages a base translates: `English and German, both ways`, `English to Chinese`, `100 languages, …`."""
    if base.one_way:
        return language_pair_text(base.sources[0], base.targets[0])
    if not base.sources or not base.targets:
        codes = base.sources or base.targets
        names = listed([language_name(code) for code in codes[:FEW]])
        if not codes or len(codes) > FEW:
            return tr("languages as its card states")
        return tr("from {names}", names=names) if base.sources else tr("into {names}", names=names)
    if base.sources == base.targets:
        if len(base.sources) <= FEW:
            return tr("{names}, both ways", names=listed([language_name(code) for code in base.sources]))
        return tr("{count} languages, any to any", count=len(base.sources))
    return tr(
        "{sources} to {targets}",
        sources=listed([language_name(code) for code in base.sources[:FEW]]),
        targets=listed([language_name(code) for code in base.targets[:FEW]]),
    )

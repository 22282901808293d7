"""The home page of a studio without projects: what it does, an example, and a sample corpus to start with."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import FileResponse
from markupsafe import Markup

from engine.corpora.bundled import SampleCorpus
from engine.errors import InputError
from engine.store import ProjectRow
from studio.components.layout import heading
from studio.components.model_cards import license_line
from studio.components.templating import render
from studio.components.theme import STATIC
from studio.i18n.translate import tr
from studio.services.catalog import default_pair
from studio.services.new_project import open_terms, start_from_samples
from studio.services.service import Service

PICTURE = "/tm/comparison.png"


def welcome_heading() -> str:
    """The heading with two sentences on what the studio is and whom it is for."""
    return heading(
        "Teach a translation model your style",
        tr(
            "Tailor MT learns from sentences of your own and makes a plugin of them, with which a translation model writes as you "
            "do; the model itself stays as it is, and nothing leaves this machine. It is for translators and teams who have texts "
            "of their own, and for researchers who compare methods of adaptation."
        ),
    )


def welcome(service: Service) -> str:
    """A picture of a comparison, the button that starts a project from a bundled sample, and the dialog with the licences to
    accept first.
    """
    corpus, base = first_sample(service), first_base(service)
    if corpus is None or not base:
        return render("home_welcome.html", picture=PICTURE, corpus=None, terms=[])
    terms = [(card.title, Markup(license_line(card))) for card, _ in open_terms(service, base, [corpus])]
    return render("home_welcome.html", picture=PICTURE, corpus=corpus, terms=terms)


def first_base(service: Service) -> str:
    """The path of the base for a first project; empty if there is none."""
    return next((str(base["path"]) for base in service.catalog.bases()), "")


def first_sample(service: Service) -> SampleCorpus | None:
    """The first bundled style corpus in the first base's initial target language; None if there is none."""
    base = first_base(service)
    target = default_pair(base)[1] if base else None
    return next((corpus for corpus in service.catalog.samples() if corpus.kind == "style" and corpus.target == target), None)


def start_with_sample(service: Service, agreed: bool) -> ProjectRow:
    """Create a project from `first_sample`. Raises InputError if terms are not accepted or there is no such corpus."""
    corpus, base = first_sample(service), first_base(service)
    if corpus is None:
        raise InputError("This sample no longer exists. Reload the page.")
    source, target = default_pair(base)
    return start_from_samples(service, [corpus], str(source), str(target), base, agreed)


def add_welcome_routes(app: FastAPI) -> None:
    """Serve the welcome picture from this server."""

    @app.get(PICTURE, include_in_schema=False)
    def picture() -> FileResponse:
        return FileResponse(STATIC / "comparison.png", headers={"Cache-Control": "public, max-age=86400"})

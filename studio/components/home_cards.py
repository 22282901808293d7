"""Every project as a card with what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence

from studio.auth.identity import guest
from studio.components.layout import address
from studio.components.templating import render
from studio.i18n.translate import ago, tr, trn
from studio.services.catalog import language_pair_text
from studio.services.projects import Glance


def home_cards(glances: Sequence[Glance]) -> str:
    """Name, languages, state, what there is, the best figure, when it changed; rename and delete below."""
    known = guest()
    members = known is not None and known.account is not None
    return render("home_cards.html", cards=[_card(one) for one in glances], members=members)


def _card(one: Glance) -> dict[str, object]:
    counts = [tr("No sentences read yet")]
    if one.sentences is not None:
        counts = [trn("{count} sentence", "{count} sentences", one.sentences)]
        counts += [trn("{count} phrase", "{count} phrases", one.phrases)] if one.phrases is not None else []
    plugins = [trn("{count} plugin", "{count} plugins", one.plugins)] if one.plugins else []
    holds = trn("{count} file of samples", "{count} files of samples", one.files)
    return {
        "project": one.project,
        "address": address(one.next, one.project.id),
        "state": one.state,
        "languages": language_pair_text(one.project.source, one.project.target),
        "counts": [*counts, *plugins],
        "best": one.best,
        "changed": ago(one.changed),
        "holds": tr("{one}, {two}.", one=holds, two=plugins[0]) if plugins else tr("{one}.", one=holds),
    }

"""Choices for a new project, with cards and licences: the base's terms, and the bundled sample corpora."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from engine.core.model_card import ModelCard
from engine.corpora.bundled import SampleCorpus
from studio.components.html import number
from studio.components.model_cards import card_fold, license_line
from studio.components.templating import render, script
from studio.i18n.translate import listed, mark, tr
from studio.services.catalog import language_name, language_pair_text

CHOOSE = script("choosers.js")
KINDS = {"style": mark("style"), "domain": mark("domain"), "bilingual": mark("bilingual"), "dirty": mark("noisy")}


def base_terms(card: ModelCard | None) -> str:
    """The base's licence, and its card, folded."""
    if card is None:
        return ""
    return license_line(card) + card_fold(card, tr("About this base"))


def sample_cards(corpora: Sequence[SampleCorpus], title: str = "") -> str:
    """The bundled corpora as cards: kind, size, licence, the button to load them, and the model card, folded."""
    if not corpora:
        return ""
    titles = {corpus.name: corpus.title for corpus in corpora}
    cards = [_card(corpus, [titles[name] for name in corpus.goes_with if name in titles]) for corpus in corpora]
    return render("sample_cards.html", cards=cards, title=title or tr("Bundled samples"))


def _card(corpus: SampleCorpus, titles: list[str]) -> dict[str, object]:
    count = number(corpus.lines)
    if corpus.source:
        languages, lines = language_pair_text(corpus.source, corpus.target), tr("{count} pairs", count=count)
    else:
        languages = language_name(corpus.target)
        lines = tr("{count} lines", count=count) if corpus.kind == "dirty" else tr("{count} sentences", count=count)
    return {
        "corpus": corpus,
        "kind": tr(KINDS.get(corpus.kind, corpus.kind)),
        "facts": [languages, lines, tr("licence {name}", name=corpus.card.license_name)],
        "terms": Markup(license_line(corpus.card)) if corpus.card.restricted else "",
        "others": listed(titles) if titles else "",
        "text": Markup(card_fold(corpus.card, tr("Card and licence"))),
    }

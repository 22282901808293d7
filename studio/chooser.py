"""What a project can start from, with cards and licences: the base's terms, and the bundled sample corpora."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cards import Card
from engine.samples import SampleCorpus
from studio.cards import card_fold, license_line
from studio.catalog import language_name, pair_said
from studio.html import esc, number, tag
from studio.i18n import listed, mark, tr

__all__ = ["CHOOSE", "base_terms", "sample_cards"]

CHOOSE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-sample]');
  if (button) trigger('choose', {name: button.dataset.sample, together: button.dataset.together || ''});
});
"""
KINDS = {"style": mark("style"), "domain": mark("domain"), "bilingual": mark("bilingual"), "dirty": mark("untidy")}


def base_terms(card: Card | None) -> str:
    """The base's licence, always there, and its card, folded."""
    if card is None:
        return ""
    return license_line(card) + card_fold(card, tr("About this base"))


def sample_cards(sets: Sequence[SampleCorpus], title: str = "") -> str:
    """The bundled corpora: what each is, its size and licence, one click to load it, and its card."""
    if not sets:
        return ""
    known = {one.name: one for one in sets}
    cards = "".join(_card(one, [known[name] for name in one.goes_with if name in known]) for one in sets)
    return f'<p class="tm-quiet tm-or">{esc(title or tr("Bundled samples"))}</p><div class="tm-grid tm-corpora">{cards}</div>'


def _card(one: SampleCorpus, others: Sequence[SampleCorpus]) -> str:
    languages = pair_said(one.source, one.target) if one.source else language_name(one.target)
    unit = (
        tr("{count} pairs") if one.source else tr("{count} lines") if one.kind == "dirty" else tr("{count} sentences")
    )
    licence = tr("licence {name}", name=one.card.license_name)
    facts = f"{languages} · {unit.format(count=number(one.lines))} · {licence}"
    both = ""
    if others:
        load = tr("Load with {names}: two domains", names=listed([other.title for other in others]))
        both = (
            f'<button type="button" class="tm-text-button" data-sample="{esc(one.name)}" data-together="yes">'
            f"{esc(load)}</button>"
        )
    terms = license_line(one.card) if one.card.restricted else ""
    return (
        f'<div class="tm-card tm-corpus"><button type="button" class="tm-corpus-use" data-sample="{esc(one.name)}">'
        f"<h3 aria-level=2>{esc(one.title)} {tag(tr(KINDS.get(one.kind, one.kind)))}</h3><p>{esc(one.card.summary)}</p>"
        f'<p class="tm-facts">{esc(facts)}</p></button>{terms}{both}{card_fold(one.card, tr("Card and licence"))}</div>'
    )

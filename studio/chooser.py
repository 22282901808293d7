"""What a project can start from, with cards and licences: the base's terms, and the bundled sample corpora."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cards import Card
from engine.samples import SampleCorpus
from studio.cards import card_fold, license_line
from studio.catalog import language_name
from studio.html import esc, number, tag

__all__ = ["CHOOSE", "base_terms", "sample_cards"]

CHOOSE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-sample]');
  if (button) trigger('choose', {name: button.dataset.sample, together: button.dataset.together || ''});
});
"""
KINDS = {"style": "style", "domain": "domain", "bilingual": "bilingual", "dirty": "untidy"}


def base_terms(card: Card | None) -> str:
    """The base's licence, always there, and its card, folded."""
    if card is None:
        return ""
    return license_line(card) + card_fold(card, "About this base")


def sample_cards(sets: Sequence[SampleCorpus], title: str = "Bundled samples") -> str:
    """The bundled corpora: what each is, its size and licence, one click to load it, and its card."""
    if not sets:
        return ""
    known = {one.name: one for one in sets}
    cards = "".join(_card(one, [known[name] for name in one.goes_with if name in known]) for one in sets)
    return f'<p class="tm-quiet tm-or">{esc(title)}</p><div class="tm-grid tm-corpora">{cards}</div>'


def _card(one: SampleCorpus, others: Sequence[SampleCorpus]) -> str:
    languages = " to ".join(language_name(code) for code in (one.source, one.target) if code)
    unit = "pairs" if one.source else "lines" if one.kind == "dirty" else "sentences"
    facts = f"{languages} · {number(one.lines)} {unit} · licence {one.card.license_name}"
    both = ""
    if others:
        title = " and ".join(other.title for other in others)
        both = (
            f'<button type="button" class="tm-text-button" data-sample="{esc(one.name)}" data-together="yes">'
            f"Load with {esc(title)}: two domains</button>"
        )
    terms = license_line(one.card) if one.card.restricted else ""
    return (
        f'<div class="tm-card tm-corpus"><button type="button" class="tm-corpus-use" data-sample="{esc(one.name)}">'
        f"<h3>{esc(one.title)} {tag(KINDS.get(one.kind, one.kind))}</h3><p>{esc(one.card.summary)}</p>"
        f'<p class="tm-facts">{esc(facts)}</p></button>{terms}{both}{card_fold(one.card, "Card and licence")}</div>'
    )

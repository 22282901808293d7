"""What the page Proportions shows: words with their shares, the corpus as a whole, single words across domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.store import JobRow, ProjectRow
from studio.catalog import language_name
from studio.frame import address
from studio.html import bar, card, empty, esc, lang_attribute, note, number, way
from studio.i18n import tr
from studio.plotted import domain_colours, figure, layer_control

__all__ = [
    "SIDES",
    "WORD_SCRIPT",
    "corpus_card",
    "held_out_line",
    "job_card",
    "legend",
    "no_proportions",
    "sentence_view",
    "word_card",
    "words_figure",
]

SIDES = ("encoder", "decoder")
BINS = [f"{low}–{low + 10} %" for low in range(0, 100, 10)]
LISTED = 14  # words of a list
FOUND = 12  # words of a search
# Words are buttons, examples too; `more` of a page's own.
WORD_SCRIPT = """
element.addEventListener('click', (event) => {
  const word = event.target.closest('[data-word]');
  if (word) trigger('word', {word: word.dataset.word, language: word.dataset.side});
  const example = event.target.closest('[data-example]');
  if (example) trigger('example', {number: example.dataset.example});
});
"""


def legend(domains: Sequence[str]) -> str:
    """The domains with their colours."""
    rows = zip(domains, domain_colours(domains), strict=True)
    items = "".join(f'<li><i style="background:{colour}"></i>{esc(name)}</li>' for name, colour in rows)
    return f'<ul class="tm-domains" aria-label="{esc(tr("Domains"))}">{items}</ul>'


def layer_names(names: Sequence[str]) -> list[str]:
    """What the slider says: all layers together first."""
    numbered = (tr("layer {number}", number=name) if name.isdigit() else tr(name) for name in names)
    return [tr("all layers"), *numbered]


# -- a sentence


def sentence_view(found: Mapping[str, Any], project: ProjectRow, layers: Mapping[str, int]) -> str:
    """A sentence as the encoder reads it and its translation as the decoder does; `layers` are those last looked at.

    Of the user's own sentences, which are `known`, the translation is what the user wrote.
    """
    blocks, domains = "", []
    known = "domain" in found
    for side, title, language in (
        ("encoder", tr("Encoder, reading its source" if known else "Encoder, reading the sentence"), project.source),
        (
            "decoder",
            tr("Decoder, writing your sentence" if known else "Decoder, writing the translation"),
            project.target,
        ),
    ):
        one = found.get(side)
        if one and one["words"]:
            text = str(found["source"] if side == "encoder" else found["translation"])
            blocks += words_figure(one, side, title, text, language, layers.get(side, 0))
            domains = one["domains"]
    nothing = f'<p class="tm-quiet">{esc(tr("These proportions have nothing to say of this sentence."))}</p>'
    return legend(domains) + blocks if blocks else nothing


def words_figure(one: Mapping[str, Any], side: str, title: str, text: str, language: str, layer: int) -> str:
    """Words along the bottom, the shares of the domains stacked above, a slider through the layers."""
    words = [str(word["text"]) for word in one["words"]]
    data = {
        "words": words,
        "domains": one["domains"],
        "colours": domain_colours(one["domains"]),
        "shares": [[word["proportions"] for word in one["words"]]]
        + [[word["layers"][place] for word in one["words"]] for place in range(len(one["layers"]))],
        "wide": language.split("-", maxsplit=1)[0] in ("zh", "ja", "ko"),
        "language": side,
    }
    says = tr("Shares of the domains, word by word: {text}", text=text)
    control = layer_control(side, layer_names(one["layers"]), layer, tr("Layer"))
    return (
        f'<section class="tm-plots"><div class="tm-figure-head"><h3 aria-level=2>{esc(title)}</h3>{control}</div>'
        f'<p class="tm-quiet tm-figure-text"{lang_attribute(language)}>{esc(text)}</p>'
        f"{figure('words', data, label=says)}{words_table(one, side, language)}</section>"
    )


def words_table(one: Mapping[str, Any], side: str, language: str) -> str:
    """The same as a table, over all layers; words are buttons that look a word up."""
    heads = "".join(f'<th class="num">{esc(name)}</th>' for name in one["domains"])
    rows = ""
    for word in one["words"]:
        shares = "".join(f'<td class="num">{share:.0%}</td>' for share in word["proportions"])
        rows += (
            f'<tr><td{lang_attribute(language)}><button class="tm-text-button" data-word="{esc(word["text"])}" '
            f'data-side="{side}">{esc(word["text"])}</button></td>{shares}<td class="num">{word["shared"]:.0%}</td></tr>'
        )
    return (
        f'<details class="tm-more"><summary>{esc(tr("As a table, all layers"))}</summary><div class="tm-scroll"><table class="tm">'
        f'<thead><tr><th>{esc(tr("word"))}</th>{heads}<th class="num">{esc(tr("shared"))}</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


# -- the samples as a whole


def corpus_card(shown: Mapping[str, Any], side: str, layer: int) -> str:
    """The words of each domain, and how many words have how much of each domain, layer by layer."""
    corpus = shown["corpus"].get(side)
    if not corpus:
        return f'<p class="tm-quiet">{esc(tr("Nothing was read on this side."))}</p>'
    names, domains = corpus["layers"], corpus["domains"]
    rows = [name for name in domains if corpus["by_domain"][name]["mean"] is not None]
    colours = domain_colours(domains)
    of_layers = [[corpus["by_domain"][name]["layers"][place] for name in rows] for place in range(len(names))]
    counts = corpus["histogram"]["counts"]  # (P, k, 10)
    together = [
        [sum(counts[place][j][at] for place in range(len(names))) / len(names) for at in range(len(BINS))]
        for j in range(len(domains))
    ]
    common = {"domains": domains, "colours": colours}
    bars = {**common, "rows": rows, "shares": [[corpus["by_domain"][name]["mean"] for name in rows], *of_layers]}
    counted = tr("{count} words by their share of each domain.", count=number(corpus["word_count"]))
    histogram = {**common, "bins": BINS, "counts": [together, *counts]}
    control = layer_control("corpus", layer_names(names), layer, tr("Layer"))
    return (
        f'<div class="tm-plots"><div class="tm-figure-head"><h3>{esc(tr("What the words of each domain are made of"))}</h3>'
        f"{control}</div>{figure('corpus', bars, label=tr('Mean shares of the domains in the words of each domain'))}"
        f"<h3>{esc(tr('How many words have how much of a domain'))}</h3>"
        f'<p class="tm-quiet tm-figure-text">{esc(counted)}</p>'
        f"{figure('histogram', histogram, label=tr('Histogram of the shares of each domain'))}{held_out_table(shown, side)}</div>"
    )


def held_out_line(shown: Mapping[str, Any]) -> str:
    """How well sentences that were not fitted on lean to their own domain, in a sentence."""
    held = shown.get("held_out", {}).get("decoder") or shown.get("held_out", {}).get("encoder")
    if not held:
        return ""
    right = round(held["sentences"] * held["sentences_leaning_right"])
    return tr(
        "{some} of {all} sentences that were held out lean to their own domain.", some=right, all=held["sentences"]
    )


def held_out_table(shown: Mapping[str, Any], side: str) -> str:
    """The held-out figures, layer by layer; nothing where nothing was held out."""
    held = shown.get("held_out", {}).get(side)
    if not held:
        return ""
    sure = tr("How sure this is, on {count} words held out", count=number(held["words"]))
    rows = "".join(
        f'<tr><td>{esc(name)}</td><td class="num">{own:.0%}</td><td class="num">{right:.0%}</td></tr>'
        for name, own, right in zip(held["layers"], held["own_proportion"], held["words_leaning_right"], strict=True)
    )
    return (
        f'<details class="tm-more"><summary>{esc(sure)}</summary><table class="tm"><thead><tr><th>{esc(tr("layer"))}</th>'
        f'<th class="num">{esc(tr("share of their own domain"))}</th><th class="num">{esc(tr("words that lean to it"))}</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></details>"
    )


# -- words


def word_card(shown: Mapping[str, Any], side: str, wanted: str, language: str) -> str:
    """A word across the domains; without one, the words of each domain and those that all share."""
    corpus = shown["corpus"].get(side)
    if not corpus:
        return ""
    domains = corpus["domains"]
    sought = wanted.strip().casefold()
    if sought:
        index = [row for row in corpus.get("index", ()) if sought in row["text"]]
        index.sort(
            key=lambda row: (row["text"] != sought, not row["text"].startswith(sought), -row["count"], row["text"])
        )
        if not index:
            count = number(corpus["word_count"])
            none = tr("None of the {count} words that were read is like “{word}”.", count=count, word=wanted)
            return f'<p class="tm-quiet">{esc(none)}</p>'
        return word_rows(index[:FOUND], domains, language)
    body = ""
    for name, colour in zip(domains, domain_colours(domains), strict=True):
        chips = word_chips(corpus["words"]["of"][name], side, language)
        body += f'<h3><i class="tm-dot" style="background:{colour}"></i>{esc(tr("{domain}, its own", domain=name))}</h3>{chips}'
    return f"{body}<h3>{esc(tr('Shared by all'))}</h3>{word_chips(corpus['words']['shared'], side, language)}"


def word_chips(rows: Sequence[Mapping[str, Any]], side: str, language: str) -> str:
    words = "".join(
        f'<button class="tm-chip" data-word="{esc(row["text"])}" data-side="{side}"{lang_attribute(language)}>{esc(row["text"])}'
        "</button>"
        for row in rows[:LISTED]
    )
    return f'<div class="tm-chips">{words}</div>'


def word_rows(rows: Sequence[Mapping[str, Any]], domains: Sequence[str], language: str) -> str:
    """Words with their mean shares as a strip, how shared they are, and where they stand."""
    colours = domain_colours(domains)
    body = ""
    for row in rows:
        strip = "".join(
            f'<i style="width:{100 * share:.1f}%;background:{colour}" title="{esc(name)} {share:.0%}"></i>'
            for share, colour, name in zip(row["proportions"], colours, domains, strict=True)
        )
        says = ", ".join(f"{name} {share:.0%}" for name, share in zip(domains, row["proportions"], strict=True))
        where = " · ".join(
            tr("{count} in {domain}", count=number(times), domain=name)
            for times, name in zip(row["in"], domains, strict=True)
            if times
        )
        shared = tr("{share} shared", share=f"{row['shared']:.0%}")
        body += (
            f"<li><div><b{lang_attribute(language)}>{esc(row['text'])}</b> <small>{esc(shared)}</small></div>"
            f'<div class="tm-strip" role="img" aria-label="{esc(says)}">{strip}</div>'
            f'<p class="tm-quiet">{esc(tr("{shares}. Stands {where}.", shares=says, where=where))}</p></li>'
        )
    return f'<ul class="tm-word-rows">{body}</ul>'


# -- nothing yet


def job_card(job: JobRow) -> str:
    """How far the fitting is."""
    line = tr(job.step) if job.step else tr("Waiting for a worker")
    return card(
        f'<b>{esc(tr("Looking at your samples"))}</b> <span class="tm-quiet">{esc(line)}</span>{bar(job.fraction)}'
    )


def no_proportions(project: ProjectRow | None, reason: str, samples: bool) -> str:
    """The empty page: what is missing, and the next step."""
    if project is None or not samples:
        place = address("samples", project.id if project else "new")
        link = way(place, tr("Go to Samples"))
        return empty(tr("No proportions yet"), tr("They are there seconds after your samples are read."), link)
    if reason:
        return note(reason, bad=True)
    what = tr(
        "Fit what every word of your {language} samples shares with each domain. It takes some seconds.",
        language=language_name(project.target),
    )
    return empty(tr("No proportions yet"), what)

"""The figures of the page Proportions: words of a sentence with their shares, the whole corpus, single words across domains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from engine.methods.domain_mixing.shapes import SentenceProportions, Shown, WordRow
from engine.store import JobRow, PluginRow, ProjectRow
from studio.components.html import empty, link_line, note, number
from studio.components.layout import address
from studio.components.plotly import domain_colours, figure, layer_control
from studio.components.templating import render, script
from studio.i18n.translate import mark, percent, together, tr
from studio.services.catalog import language_name
from studio.services.proportions import SIDES

BINS = [f"{low}–{low + 10}\u00a0%" for low in range(0, 100, 10)]
# Domain names assigned by the program; they are translated, the user's names are not.
OWN = (mark("samples"), mark("general"), mark("bundled general"))
LISTED = 14  # words in a list
SEARCH_LIMIT = 12  # words in a search result
SURE = 0.05  # significance level
WORD_SCRIPT = script("domain-figures.js")
MARK = script("proportions.js")


def named(domain: str) -> str:
    """The display name of a domain; the user's names are not translated."""
    return tr(domain) if domain in OWN else domain


def legend(domains: Sequence[str], order: Sequence[str]) -> Markup:
    """The domains with their colours, which are assigned in the project's `order`."""
    names, colours = map(named, domains), domain_colours(domains, order)
    return Markup(render("domain_legend.html", domains=list(zip(names, colours, strict=True))))


def layer_names(names: Sequence[str]) -> list[str]:
    """The labels of the layer slider; the first one stands for all layers."""
    numbered = (tr("layer {number}", number=name) if name.isdigit() else tr(name) for name in names)
    return [tr("all layers"), *numbered]


# -- a sentence


def sentence_view(shares: Mapping[str, Any], project: ProjectRow, layers: Mapping[str, int], order: Sequence[str] = ()) -> str:
    """Domain shares of a sentence in the encoder and of its translation in the decoder; `layers` are the selected layers.

    Sentences of the samples have a domain; their translation is the user's text.
    """
    from_samples = "domain" in shares
    titles = {
        "encoder": tr("Encoder, reading its source" if from_samples else "Encoder, reading the sentence"),
        "decoder": tr("Decoder, writing your sentence" if from_samples else "Decoder, writing the translation"),
    }
    texts = {"encoder": str(shares["source"]), "decoder": str(shares["translation"])}
    sides = [
        {
            **shares[side],
            "side": side,
            "title": titles[side],
            "text": texts[side],
            "language": side_language(project, side),
            "control": Markup(layer_control(side, layer_names(shares[side]["layers"]), layers.get(side, 0))),
            "figure": words_figure(shares[side], texts[side], side_language(project, side), order),
        }
        for side in SIDES
        if shares.get(side) and shares[side]["words"]
    ]
    return render(
        "sentence_shares.html",
        sides=sides,
        legend=legend(sides[-1]["domains"], order) if sides else "",
        percent=percent,
        named=named,
    )


def side_language(project: ProjectRow, side: str) -> str:
    """The language code of the encoder's or decoder's text."""
    return project.source if side == "encoder" else project.target


def words_figure(shares: SentenceProportions, text: str, language: str, order: Sequence[str]) -> Markup:
    """A figure with words along the x axis and the shares of the domains stacked above."""
    words = shares["words"]
    data = {
        "words": [str(word["text"]) for word in words],
        "domains": list(map(named, shares["domains"])),
        "colours": domain_colours(shares["domains"], order),
        "shares": [[word["proportions"] for word in words]]
        + [[word["layers"][position] for word in words] for position in range(len(shares["layers"]))],
        "wide": language.split("-", maxsplit=1)[0] in ("zh", "ja", "ko"),
        "language": shares["side"],
    }
    return Markup(figure("words", data, label=tr("Shares of the domains, word by word: {text}", text=text)))


# -- the samples as a whole


def corpus_card(proportions: Shown, side: str, layer: int, order: Sequence[str] = ()) -> str:
    """Mean shares in the words of each domain, and a histogram of the shares, layer by layer."""
    corpus = proportions["corpus"].get(side)
    domains = proportions["domains"]
    if not corpus:
        return render("corpus_shares.html", legend=legend(domains, order), bars="")
    names, domains_read, by_domain = corpus["layers"], corpus["domains"], corpus["by_domain"]
    layers_of = {name: layers for name in domains_read if (layers := by_domain[name]["layers"]) is not None}
    rows = list(layers_of)
    of_layers = [[layers[position] for layers in layers_of.values()] for position in range(len(names))]
    counts = corpus["histogram"]["counts"]  # (P, k, 10)
    together = [
        [sum(counts[position][j][at] for position in range(len(names))) / len(names) for at in range(len(BINS))]
        for j in range(len(domains_read))
    ]
    common = {"domains": list(map(named, domains_read)), "colours": domain_colours(domains_read, order)}
    bars = {**common, "rows": list(map(named, rows)), "shares": [[by_domain[name]["mean"] for name in rows], *of_layers]}
    histogram = {**common, "bins": BINS, "counts": [together, *counts]}
    return render(
        "corpus_shares.html",
        legend=legend(domains, order),
        control=Markup(layer_control("corpus", layer_names(names), layer)),
        bars=Markup(figure("corpus", bars, label=tr("Mean shares of the domains in the words of each domain"))),
        histogram=Markup(figure("histogram", histogram, label=tr("Histogram of the shares of each domain"))),
        words=corpus["word_count"],
        held_out=proportions.get("held_out", {}).get(side),
        percent=percent,
    )


def title_line(proportions: Shown, plugin: PluginRow | None) -> str:
    """The sentence under the heading."""
    count = number(sum(proportions["sentences"].values()))
    if plugin is not None:
        return tr("How {name} mixes its domains, on {count} sentences.", name=plugin.name, count=count)
    fitted = tr(
        "Fitted in {seconds} s on {count} sentences, before any training.", seconds=f"{proportions['seconds']:.0f}", count=count
    )
    return together(fitted, held_out_line(proportions))


def held_out_line(proportions: Shown) -> str:
    """How many held-out sentences lean towards their domain, with a warning if that is not significantly above chance."""
    held_out = proportions.get("held_out", {}).get("decoder") or proportions.get("held_out", {}).get("encoder")
    if not held_out:
        return ""
    right = round(held_out["sentences"] * held_out["sentences_leaning_right"])
    line = tr("{some} of {all} held-out sentences lean towards their own domain.", some=right, all=held_out["sentences"])
    share = 1 / max(1, len(proportions["domains"]))
    if chance_of(right, held_out["sentences"], share) < SURE:
        return line
    says = tr(
        "That is not significantly more than by chance ({chance}): these samples do not distinguish the domains.",
        chance=f"{held_out['sentences'] * share:.1f}",
    )
    return together(line, says)


def chance_of(successes: int, trials: int, share: float) -> float:
    """The probability of at least `successes` in `trials` trials with success probability `share` (exact binomial)."""
    if successes <= 0 or share >= 1:
        return 1.0
    log_factorial = math.lgamma(trials + 1)
    logs = (  # of binomial terms: with thousands of trials, their factors overflow or underflow
        log_factorial - math.lgamma(i + 1) - math.lgamma(trials - i + 1) + i * math.log(share) + (trials - i) * math.log1p(-share)
        for i in range(successes, trials + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))


# -- words


def word_card(proportions: Shown, side: str, word: str, language: str, order: Sequence[str] = ()) -> str:
    """The words that match a search, across domains; without a search, the typical words of each domain and the shared ones."""
    corpus = proportions["corpus"].get(side)
    if not corpus:
        return ""
    domains, colours = corpus["domains"], domain_colours(corpus["domains"], order)
    sought = word.strip().casefold()
    if not sought:
        own_words = corpus["words"]["of"]
        return render(
            "domain_words.html", side=side, language=language, listed=LISTED, shared=corpus["words"]["shared"],
            domains=[(named(name), colour, own_words[name]) for name, colour in zip(domains, colours, strict=True)],
        )  # fmt: skip
    index = [row for row in corpus.get("index", ()) if sought in row["text"]]
    index.sort(key=lambda row: (row["text"] != sought, not row["text"].startswith(sought), -row["count"], row["text"]))
    return render(
        "word_shares.html",
        rows=[word_row(row, domains, colours) for row in index[:SEARCH_LIMIT]],
        language=language,
        count=number(corpus["word_count"]),
        word=word,
        percent=percent,
    )


def word_row(row: WordRow, domains: Sequence[str], colours: Sequence[str]) -> dict[str, object]:
    """A word with its mean shares, how evenly they are shared, and where it occurs."""
    return {
        "text": row["text"],
        "shared": percent(row["shared"]),
        "shares": ", ".join(f"{named(name)} {percent(share)}" for name, share in zip(domains, row["proportions"], strict=True)),
        "parts": list(zip(map(named, domains), row["proportions"], colours, strict=True)),
        "where": " · ".join(
            tr("{count} in {domain}", count=number(times), domain=named(name))
            for times, name in zip(row["in"], domains, strict=True)
            if times
        ),
    }


def example_buttons(proportions: Shown, language: str) -> str:
    """Buttons with example sentences from the samples."""
    examples = [(shortened(example["translation"]), named(example["domain"])) for example in proportions.get("examples", ())]
    return render("proportions_examples.html", examples=examples, language=language) if examples else ""


def shortened(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:42].rstrip()}…"


def example_view(
    proportions: Shown, project: ProjectRow, layers: Mapping[str, int], number: int = 0, order: Sequence[str] = ()
) -> str:
    """The example with that number, or the first one if there is none; empty without examples."""
    examples = proportions.get("examples") or []
    if not examples:
        return ""
    return sentence_view(examples[number if 0 <= number < len(examples) else 0], project, layers, order)


def page_address(**values: str) -> str:
    """Parameters to set in the page's address; an empty value removes the parameter."""
    return render("proportions_address.html", query=urlencode(values))


# -- nothing yet


def job_card(job: JobRow) -> str:
    """The progress of the fitting job."""
    return render("proportions_job.html", job=job)


def waiting_line() -> str:
    """The placeholder while a sentence is processed."""
    return render("proportions_waiting.html")


def no_proportions(project: ProjectRow | None, reason: str, samples: bool) -> str:
    """The placeholder for missing proportions: what is missing or failed, and the next step."""
    if project is None or not samples:
        link = link_line(address("samples", project.id if project else "new"), tr("Go to Samples"))
        return empty(tr("No proportions yet"), tr("They appear seconds after your samples are read."), link)
    if reason:
        return note(reason, bad=True)
    text = tr(
        "Fit how much every word of your {language} samples shares with each domain. This takes a few seconds.",
        language=language_name(project.target),
    )
    return empty(tr("No proportions yet"), text)

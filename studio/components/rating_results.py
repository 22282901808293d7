"""A rating round on its page: the verdict, win, tie and lose as bars, the table with kappa, and the raters with their links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from markupsafe import Markup

from engine.errors import InputError
from engine.evaluation.rater_agreement import Summary
from engine.store import ProjectRow, Store
from engine.store.ratings import RaterRow, RoundRow
from engine.workflows.human_rating import Texts, pick_items, summary
from studio.components.html import empty, esc, link_line, number
from studio.components.layout import address
from studio.components.templating import render
from studio.i18n.translate import listed, mark, moment, together, tr, translate_message, trn
from studio.services.ratings import rater_address, sentence_limit

SURE = 0.05
CHOICES = (mark("win"), mark("tie"), mark("lose"))


def result_cards(store: Store, row: RoundRow) -> str:
    """The results so far; empty before the first answer."""
    results = _summary(store, row.id, store.ratings.version(row.id))
    return result(results, row) if results.raters else ""


def result(results: Summary, row: RoundRow) -> str:
    """The verdict, one card per question, and the table: one row per rater, the average, kappa, and the sign test."""
    return render(
        "rating_result.html", verdict=verdict(results, row), questions=results.questions,
        raters=results.raters, choices=CHOICES, p_words=p_words, foot=_foot(results, row),
    )  # fmt: skip


@lru_cache(maxsize=8)
def _summary(store: Store, round_id: int, version: tuple[int, int, int]) -> Summary:
    # Cached because the page polls every two seconds.
    return summary(store, store.ratings.get(round_id))


def verdict(results: Summary, row: RoundRow) -> str:
    """One sentence as safe HTML: in which questions a system is significantly better, and in which there is no difference."""
    better: dict[str, list[str]] = {row.one: [], row.two: []}
    even = []
    for question in results.questions:
        if question.p is not None and question.p < SURE:
            better[row.one if question.items_for > question.items_against else row.two].append(question.name)
        elif question.raters:
            even.append(question.name)
    parts = [
        tr("{name} is better in {questions}", name=Markup("<b>{}</b>").format(name), questions=_questions(names))
        for name, names in better.items()
        if names
    ]
    if even:
        parts.append(tr("no significant difference in {questions}", questions=_questions(even)))
    text = tr("{one}.", one=tr("; ").join(parts)) if parts else ""
    return f"{text[:1].upper()}{text[1:]}"


def _questions(names: Sequence[str]) -> str:
    return esc(listed([tr(name) for name in names]))


def p_words(p: float | None) -> str:
    return "–" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _foot(results: Summary, row: RoundRow) -> str:
    """Notes on the meaning of the figures."""
    lines = [tr("Win: {one} is better than {two}.", one=row.one, two=row.two)]
    if row.about.get("same"):
        counts = {"some": number(row.about["same"]), "all": number(row.about.get("sentences", row.size))}
        lines.append(tr("{some} of {all} sentences were the same in both and are skipped.", **counts))
    agreement = results.questions[0].agreement
    if agreement.raters > 1:
        counts = {"count": number(agreement.items), "raters": str(agreement.raters)}
        lines.append(tr("κ over the {count} sentences that all {raters} rated.", **counts))
    else:
        lines.append(tr("κ needs two raters."))
    lines.append(tr("Sign test: sentences for and against, each decided by the majority of its raters."))
    return together(*lines)


def rater_table(raters: Sequence[RaterRow], done: Mapping[int, int], row: RoundRow, origin: str, local: bool = False) -> str:
    """Each rater with progress and link; `local`: the links work only on this computer."""
    return render("rating_raters.html", raters=raters, done=done, row=row, origin=origin, local=local, address=rater_address)


def manage_box(row: RoundRow, raters: Sequence[RaterRow]) -> str:
    """The folded box with rarely needed actions: close the round, remove a rater, delete the round."""
    return render("rating_manage.html", row=row, raters=raters)


def round_menu(rounds: Sequence[RoundRow], current: RoundRow | None, project: int) -> str:
    """The menu of other rounds, the downloads of the current one, and the link to a new round."""
    return render("rating_menu.html", rounds=rounds, current=current, address=address("rate", project), moment=moment)


def nothing_to_rate(project: ProjectRow | None) -> str:
    """The placeholder shown while there is no comparison to rate."""
    next_step = (
        link_line(address("compare", project.id), tr("Go to Compare"))
        if project
        else link_line("/samples?project=new", tr("Go to Samples"))
    )
    return empty(tr("Nothing to rate yet"), tr("Raters judge the sentences of a saved comparison."), next_step)


def round_preview(texts: Texts, first: str, second: str, max_sentences: float | None) -> str:
    """The number of sentences per rater in a round, or why the round cannot be started."""
    try:
        items, same = pick_items(texts, first, second, sentences=sentence_limit(max_sentences))
    except InputError as error:
        return render("round_preview.html", text=translate_message(error.message))
    minutes = max(1, round(len(items) / 3))
    text = trn(
        "{count} sentence per rater, about {minutes} min.", "{count} sentences per rater, about {minutes} min.", len(items),
        minutes=minutes,
    )  # fmt: skip
    if same:
        text += " " + trn("{count} is the same in both and is skipped.", "{count} are the same in both and are skipped.", same)
    return render("round_preview.html", text=text)

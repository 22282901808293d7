"""A rating round on the page: the verdict, win, tie and lose as bars, the table with kappa, and the raters with their links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from studio.html import bar, esc, note, number, tag
from studio.i18n import listed, mark, tr
from studio.raters import rater_address

if TYPE_CHECKING:
    from engine.evaluation.rating import Agreement, Question, Summary
    from engine.store import Store
    from engine.store.ratings import RaterRow, RoundRow

__all__ = ["manage_box", "rater_table", "result_cards", "result_table", "verdict"]

SURE = 0.05
CHOICES = (mark("win"), mark("tie"), mark("lose"))


def result_cards(store: Store, row: RoundRow) -> str:
    """What has come out so far; nothing before the first answer."""
    found = _summary(store, row.id, store.ratings.stamp(row.id))
    if not found.raters:
        return ""
    bars = "".join(_question_card(question) for question in found.questions)
    return (
        f'<p class="tm-verdict">{verdict(found, row)}</p><div class="tm-figures">{bars}</div>{result_table(found, row)}'
    )


@lru_cache(maxsize=8)
def _summary(store: Store, number_: int, stamp: tuple[int, int, int]) -> Summary:
    # Kept while nothing changes: the page asks every two seconds.
    from engine.evaluation.rounds import summary

    return summary(store, store.ratings.get(number_))


def verdict(found: Summary, row: RoundRow) -> str:
    """One sentence as safe HTML: for which questions one system is better, and how sure that is."""
    better: dict[str, list[str]] = {row.one: [], row.two: []}
    even = []
    for question in found.questions:
        if question.p is not None and question.p < SURE:
            better[row.one if question.items_for > question.items_against else row.two].append(question.name)
        elif question.raters:
            even.append(question.name)
    parts = [
        tr("{name} is better in {questions}", name=f"<b>{esc(name)}</b>", questions=_questions(names))
        for name, names in better.items()
        if names
    ]
    if even:
        parts.append(tr("no sure difference in {questions}", questions=_questions(even)))
    text = tr("{one}.", one=tr("; ").join(parts)) if parts else ""
    return f"{text[:1].upper()}{text[1:]}"


def _questions(names: Sequence[str]) -> str:
    return esc(listed([tr(name) for name in names]))


def p_words(p: float | None) -> str:
    return "–" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _question_card(question: Question) -> str:
    shares = "".join(
        f'<i class="{choice}" style="width:{share:.2f}%"></i>'
        for choice, share in zip(CHOICES, question.average, strict=True)
    )
    words = " · ".join(
        f"{esc(tr(choice))} <b>{share:.1f} %</b>" for choice, share in zip(CHOICES, question.average, strict=True)
    )
    return (
        f'<div class="tm-card tm-figure"><h2>{esc(tr(question.name).capitalize())}</h2>'
        f'<div class="tm-shares" aria-hidden="true">{shares}</div><p>{words}</p></div>'
    )


def result_table(found: Summary, row: RoundRow) -> str:
    """The table of the paper: a row a rater, the average, kappa, and the sign test."""
    groups = "".join(
        f'<th colspan="3" scope="colgroup">{esc(tr(one.name).capitalize())}</th>' for one in found.questions
    )
    heads = "".join(
        f'<th class="num" scope="col">{esc(tr(choice))}</th>' for _ in found.questions for choice in CHOICES
    )
    body = ""
    for name in found.raters:
        cells = "".join(
            _cells(question.raters[name].percent) if name in question.raters else "<td class=num>–</td>" * 3
            for question in found.questions
        )
        body += f'<tr><th scope="row">{esc(name)}</th>{cells}</tr>'
    average = "".join(_cells(question.average) for question in found.questions)
    kappas = "".join(f"<td colspan=3 class=num>{_kappa(question.agreement)}</td>" for question in found.questions)
    tests = "".join(
        f"<td colspan=3 class=num>{esc(p_words(one.p))} <small>{one.items_for} : {one.items_against}</small></td>"
        for one in found.questions
    )
    body += f'<tr class="tm-average"><th scope="row">{esc(tr("Average"))}</th>{average}</tr>'
    body += (
        f'<tr><th scope="row">Fleiss’ κ</th>{kappas}</tr><tr><th scope="row">{esc(tr("Sign test"))}</th>{tests}</tr>'
    )
    table = (
        f'<table class="tm tm-ratings"><thead><tr><td></td>{groups}</tr><tr>'
        f'<th scope="col">{esc(tr("rater"))}</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    return f'<div class="tm-card tm-result"><div class="tm-scroll">{table}</div>{_foot(found, row)}</div>'


def _cells(shares: Sequence[float]) -> str:
    return "".join(f"<td class=num>{share:.1f} %</td>" for share in shares)


def _kappa(agreement: Agreement) -> str:
    if agreement.kappa is None:
        return "–"
    between = ""
    if agreement.low is not None and agreement.high is not None:
        low, high = (f"{value:.2f}".replace("-", "−") for value in (agreement.low, agreement.high))
        between = f" <small>{esc(tr('{low} to {high}', low=low, high=high))}</small>"
    return f"{agreement.kappa:.3f}".replace("-", "−") + f" {esc(tr(agreement.word))}{between}"


def _foot(found: Summary, row: RoundRow) -> str:
    """What the figures mean, in short sentences."""
    lines = [tr("Win: {one} is better than {two}.", one=row.one, two=row.two)]
    if row.about.get("same"):
        counts = {"some": number(row.about["same"]), "all": number(row.about.get("sentences", row.size))}
        lines.append(tr("{some} of {all} sentences were the same in both and are left out.", **counts))
    agreement = found.questions[0].agreement
    if agreement.raters > 1:
        lines.append(
            tr(
                "κ over the {count} sentences that all {raters} rated.",
                count=number(agreement.items),
                raters=agreement.raters,
            )
        )
    else:
        lines.append(tr("κ needs two raters."))
    lines.append(tr("Sign test: sentences for and against, each as most of its raters say."))
    return f'<p class="tm-quiet tm-foot-line">{esc(" ".join(lines))}</p>'


def rater_table(
    raters: Sequence[RaterRow], done: Mapping[int, int], row: RoundRow, origin: str, local: bool = False
) -> str:
    """Each rater with progress and link."""
    body = ""
    for rater in raters:
        count = done.get(rater.id, 0)
        state = tag(tr("done"), "done") if count >= row.size else ""
        link, name = f"{origin}{rater_address(rater.token)}", tr("Link of {name}", name=rater.name)
        body += (
            f'<tr><th scope="row">{esc(rater.name)}</th><td class="tm-progress">{bar(count / max(1, row.size))}</td>'
            f"<td class=num>{esc(tr('{used} of {all}', used=number(count), all=number(row.size)))} {state}</td>"
            f'<td class="tm-link-cell"><div><input type="text" readonly value="{esc(link)}" aria-label="{esc(name)}">'
            f'<button type="button" class="tm-text-button" data-copy>{esc(tr("Copy link"))}</button>'
            f'<a href="{esc(rater_address(rater.token))}" target="_blank" rel="noopener">{esc(tr("Open"))}</a></div></td></tr>'
        )
    if not body:
        body = f"<tr><td colspan=4>{esc(tr('No raters yet. Add one below.'))}</td></tr>"
    only = tr(
        "These links open on this computer only. Start the studio with --host 0.0.0.0 to let others on your network rate."
    )
    only = esc(only).replace("--host 0.0.0.0", "<code>--host 0.0.0.0</code>")
    here = f'<p class="tm-quiet tm-foot-line">{only}</p>' if local else ""
    closed = note(tr("The round is closed: the links take no more answers.")) if row.closed else ""
    return (
        f'{closed}<div class="tm-card"><table class="tm tm-raters"><thead><tr><th scope="col">{esc(tr("rater"))}</th><td></td>'
        f'<th class="num" scope="col">{esc(tr("sentences"))}</th><th scope="col">{esc(tr("link"))}</th></tr></thead>'
        f"<tbody>{body}</tbody></table>"
        f"{here}</div>"
    )


def manage_box(row: RoundRow, raters: Sequence[RaterRow]) -> str:
    """Closing, taking a rater out, deleting: what is rarely needed, folded."""
    closing = ("open", tr("Open the round again")) if row.closed else ("close", tr("Close the round"))
    out = "".join(
        f'<button type="button" class="tm-link-button" data-act="remove" data-number="{rater.id}">'
        f"{esc(tr('Remove {name} and all answers', name=rater.name))}</button>"
        for rater in raters
    )
    removing = f"<details><summary>{esc(tr('Remove a rater…'))}</summary>{out}</details>" if out else ""
    return (
        f'<details class="tm-more tm-manage"><summary>{esc(tr("Close, remove, delete"))}</summary><div class="tm-manage-box">'
        f'<button type="button" class="tm-link-button" data-act="{closing[0]}">{esc(closing[1])}</button>{removing}'
        f'<details><summary>{esc(tr("Delete the round…"))}</summary><button type="button" class="tm-link-button tm-danger" '
        f'data-act="delete">{esc(tr("Delete it with all answers"))}</button></details></div></details>'
    )

"""One HTML page with everything in it: sentences with marks, figures with intervals, signatures. It opens without a network,
prints, and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from engine.evaluation.highlight import Run, marks
from engine.workflows.compare.export.content import Content, printable
from engine.workflows.compare.metric_rows import Row, figure_rows, share_rows, sure, value

STYLE = """
:root { color-scheme: light dark; --paper: #FBFAF7; --card: #fff; --line: #E6E2DA; --ink: #22252B; --ink-2: #62666E;
  --change: #FCEBBF; --change-line: #D49A17; --replaced: #F4E2DF; --replaced-ink: #A93A34; }
@media (prefers-color-scheme: dark) { :root { --paper: #17191D; --card: #1F2227; --line: #33373E; --ink: #E9E7E2;
  --ink-2: #A3A7AE; --change: #4B3C13; --change-line: #D8A73D; --replaced: #452A2B; --replaced-ink: #E79A90; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 24px 48px; max-width: 1180px; background: var(--paper); color: var(--ink);
  font: 14px/1.5 Inter, "Noto Sans CJK SC", "Segoe UI", "Helvetica Neue", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 20px; margin: 0; } h2 { font-size: 15px; margin: 28px 0 8px; } p { margin: 4px 0; }
.quiet { color: var(--ink-2); font-size: 13px; }
table { border-collapse: collapse; width: 100%; background: var(--card); border: 1px solid var(--line); }
th, td { text-align: left; vertical-align: top; padding: 7px 10px; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--ink-2); font-weight: 500; font-size: 12px; }
td[lang|="zh"], td[lang|="ja"], td[lang|="ko"] { font-size: 15px; }
.num { text-align: right; white-space: nowrap; } .n { color: var(--ink-2); width: 3em; }
table.lines { table-layout: fixed; } tr { break-inside: avoid; }
mark.new { background: var(--change); color: inherit; border-bottom: 2px solid var(--change-line); }
mark.old { background: var(--replaced); color: var(--replaced-ink); }
code { font-size: 12px; overflow-wrap: anywhere; }
"""


def as_html(content: Content) -> Iterator[str]:
    """The page, a line of the comparison at a time."""
    names = [content.label(i) for i in range(len(content.systems))]
    title = f"{content.title} · {', '.join(names)}"
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{esc(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{esc(content.title)}</h1>\n"
        f'<p class="quiet">{content.count:,} sentences from {esc(content.source)} to {esc(content.target)}, base '
        f"{esc(content.base)}, frozen. Compared on {content.created:%d %B %Y} with Tailor MT.</p>\n"
    )
    yield from figures(content)
    yield (
        f'<h2>Sentences</h2>\n<p class="quiet"><mark class="new">changed by a plugin</mark> '
        f'<mark class="old">vanilla wording</mark></p>\n<table class="lines"><thead><tr><th class="n"></th>'
        f"<th>{esc(content.source)}</th>{''.join(f'<th>{esc(name)}</th>' for name in names)}</tr></thead>\n<tbody>\n"
    )
    for line in content.lines():
        cells = "".join(
            f'<td lang="{esc(content.target)}" dir="auto">{marked(runs, "new" if i else "old")}{scored(line.scores[i])}</td>'
            for i, runs in enumerate(marks(line.texts, content.target))
        )
        reference = (
            f'<p class="quiet" lang="{esc(content.target)}" dir="auto">Reference: {esc(line.reference)}</p>'
            if line.reference
            else ""
        )
        yield (
            f'<tr><td class="n">{line.place + 1}</td><td lang="{esc(content.source)}" dir="auto">{esc(line.source)}'
            f"{reference}</td>{cells}</tr>\n"
        )
    yield "</tbody></table>\n</body>\n</html>\n"


def figures(content: Content) -> Iterator[str]:
    rows = figure_rows(content.figures)
    if not rows:
        return
    yield (
        '<h2>Figures</h2>\n<table><thead><tr><th>figure</th><th>system</th><th class="num">score</th>'
        '<th class="num">95 % interval</th><th class="num">change</th><th class="num">against vanilla</th>'
        '<th class="num">approximate randomisation</th></tr></thead>\n<tbody>\n'
    )
    for row in rows:
        yield figure(row)
    for one in share_rows(content.figures):
        yield (
            f'<tr><td>{esc(one.title)}</td><td>{esc(one.system)}</td><td class="num">{esc(one.text)}</td>'
            f"{'<td></td>' * 4}</tr>\n"
        )
    yield "</tbody></table>\n"
    for kind, where in (("text", "these sentences"), ("general", "general text")):
        report = content.figures.get(kind) or {}
        if report:
            yield f'<p class="quiet">On {where}: {int(report["lines"]):,} sentences. Intervals and p by paired bootstrap.</p>\n'
        for name, signature in (report.get("signatures") or {}).items():
            yield f'<p class="quiet">{esc(name)}: <code>{esc(str(signature))}</code></p>\n'
    for note in content.figures.get("notes", []):
        yield f'<p class="quiet">{esc(str(note))}</p>\n'


def figure(row: Row) -> str:
    change = "" if row.before is None else f"{row.score - row.before:+.1f}".replace("-", "−")
    return (
        f'<tr><td>{esc(row.title)}</td><td>{esc(row.system)}</td><td class="num">{value(row.metric, row.score)}</td>'
        f'<td class="num">{row.low:.1f}–{row.high:.1f}</td><td class="num">{change}</td>'
        f'<td class="num">{esc(sure(row.p))}</td><td class="num">{esc(sure(row.p_ar))}</td></tr>\n'
    )


def marked(runs: list[Run], kind: str) -> str:
    return "".join(f'<mark class="{kind}">{esc(text)}</mark>' if changed else esc(text) for text, changed in runs)


def scored(score: float | None) -> str:
    return "" if score is None else f'<div class="quiet">{score:.0f}</div>'


def esc(text: str) -> str:
    return escape(printable(text), quote=True)

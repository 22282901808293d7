"""A parser of GitHub's Markdown: CommonMark with tables, footnotes, formulas, task boxes, alerts and emoji."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

FOOTNOTE = re.compile(r"\[\^[^\[\]\s]+\]")
DEFINITION = re.compile(rf"{FOOTNOTE.pattern}:")
EMOJI = re.compile(r"(?<![A-Za-z0-9_:]):[a-z0-9_+-]++:(?![A-Za-z0-9_:])")  # also next to Chinese characters
FORMULA = re.compile(r"\$\$[^$]+\$\$|(?<![\w$])\$(?=[^\s$])[^$\n]*(?<=[^\s\\])\$(?!\w)", re.ASCII)
# Markers that may begin the first paragraph of a block, by the token of the block.
SIGNS = {
    "list_item_open": re.compile(r"\[[ xX]\][ \t]+"),  # the box of a task
    "blockquote_open": re.compile(r"\[![\w-]+\][+-]?[ \t]*"),  # the kind of an alert, which may have a title
}


def github_parser() -> MarkdownIt:
    """A new parser, which treats task boxes, alert markers and emoji as text.

    Its tokens `footnote_open` and `footnote_close` enclose the blocks of a footnote, `footnote_ref` refers to one in a sentence.
    """
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 60}).enable(["table", "strikethrough"])
    parser.block.ruler.before("reference", "footnote", _footnote, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote_ref", _inline("footnote_ref", FOOTNOTE))
    parser.inline.ruler.before("escape", "formula", _inline("formula", FORMULA))
    return parser


def _footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule for a footnote definition: the blocks after `[^1]:` that are indented by four columns."""
    if state.is_code_block(start):
        return False
    match = DEFINITION.match(state.src, state.bMarks[start] + state.tShift[start], state.eMarks[start])
    if match is None or silent:
        return match is not None
    token = state.push("footnote_open", "", 1)
    token.map = [start, end]
    text = match.end()
    while text < state.eMarks[start] and state.src[text] in " \t":
        text += 1
    before = state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType
    state.blkIndent += 4
    state.bMarks[start], state.tShift[start], state.sCount[start] = match.end(), text - match.end(), state.blkIndent
    state.parentType = "footnote"
    state.md.block.tokenize(state, start, end)
    state.blkIndent -= 4
    state.bMarks[start], state.tShift[start], state.sCount[start], state.parentType = before
    token.map[1] = state.line
    state.push("footnote_close", "", -1)
    return True


def _inline(name: str, pattern: re.Pattern[str]) -> Callable[[StateInline, bool], bool]:
    """A rule for an inline element that is kept as written: a footnote reference, a formula."""

    def rule(state: StateInline, silent: bool) -> bool:
        match = pattern.match(state.src, state.pos, state.posMax)
        if match is None:
            return False
        if not silent:
            state.push(name, "", 0).content = match[0]
        state.pos = match.end()
        return True

    return rule

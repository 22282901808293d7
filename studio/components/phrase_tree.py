"""The tree of a sentence on the page Phrases, with links to the previous and next sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from engine.phrases.types import Tree
from studio.components.html import html_block
from studio.components.templating import render, script
from studio.components.tree_svg import tree_svg
from studio.i18n.translate import tr, trn
from studio.services.phrases import Phrases, PhraseView
from studio.services.project_phrases import ProjectPhrases

TREE_SCRIPT = script("tree-svg.js")


class PhraseTree:
    """The component that shows the tree."""

    def __init__(self) -> None:
        self.card = html_block(classes="tm-grow", script=TREE_SCRIPT)

    def values(self, source: ProjectPhrases, phrases: Phrases, view: PhraseView) -> Iterator[dict[Any, Any]]:
        """Yield the stored tree of the view's sentence; if there is none, a placeholder, then the newly parsed tree."""
        count = len(source.sentences)
        if not 0 <= view.sentence < count:
            return
        tree = source.stored_tree(view.sentence)
        if tree is None:
            yield {self.card: tree_card(view.sentence, count)}
            tree = source.parsed_tree(view.sentence)
        yield {self.card: tree_card(view.sentence, count, phrase_tree(tree, source.language, phrases, view))}


def phrase_tree(tree: Tree, language: str, phrases: Phrases, view: PhraseView) -> str:
    """The tree as SVG with its phrases marked and the selected one underlined."""

    def key_of(text: str) -> str:
        row = phrases.find(text)
        return phrases.table.texts[row] if row is not None else ""

    caption = ""
    chosen = phrases.find(view.phrase)
    if chosen is not None:
        row = phrases.row(chosen)
        caption = trn("{count} token", "{count} tokens", row.length) + " → "
        caption += tr("layer {number}", number=row.layer + 1) if row.layer >= 0 else tr("excluded")
    return tree_svg(tree, language, sentence=view.sentence, key_of=key_of, chosen=view.phrase, caption=caption)


def tree_card(sentence: int, count: int, tree: str = "") -> str:
    """The card with the sentence's position among `count` and its tree; without a tree, a note that it is being parsed."""
    return render("phrase_tree_card.html", sentence=sentence, count=count, tree=Markup(tree))

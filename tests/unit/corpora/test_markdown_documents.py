"""Markdown as people write it on GitHub: what is no text stays, and what is translated is read as what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.corpora.formats.documents.files import TextFile
from engine.corpora.formats.documents.github_markdown import github_parser
from engine.corpora.formats.documents.markdown import Markdown
from engine.corpora.formats.documents.model import Context
from engine.serving.units.translate import TranslationCache, Translator, translate_units
from tests.translators import Words, identity, reverse, shout
from tests.unit.workflows.test_documents import through

GITHUB = """# Shopping list

- [ ] Buy the milk.
- [x] Sell the *cow*.[^1]
  - [X] Feed it :cow: first

> [!NOTE]
> Cows like grass.
> Very much.

> [!TIP] A title
> And a text.

> [!IMPORTANT]

See the barn[^1] and the field[^big-one], :smile: not `[^1]`.

[^1]: It is red.
[^big-one]: It is
    very green.

    Second paragraph.
[^word]: word
"""


def test_the_syntax_of_github_stays(tmp_path: Path) -> None:
    out, _ = through(tmp_path, "a.md", GITHUB, identity())
    assert out.decode() == GITHUB
    out, report = through(tmp_path, "a.md", GITHUB, shout())
    assert (
        out.decode()
        == """# SHOPPING LIST

- [ ] BUY THE MILK.
- [x] SELL THE *COW*.[^1]
  - [X] FEED IT :cow: FIRST

> [!NOTE]
> COWS LIKE GRASS. VERY MUCH.

> [!TIP] A TITLE
> AND A TEXT.

> [!IMPORTANT]

SEE THE BARN[^1] AND THE FIELD[^big-one], :smile: NOT `[^1]`.

[^1]: IT IS RED.
[^big-one]: IT IS VERY GREEN.

    SECOND PARAGRAPH.
[^word]: WORD
"""
    )
    assert report.kept == {}
    out, _ = through(tmp_path, "b.md", GITHUB.replace("\n", "\r\n"), shout())
    assert b"- [ ] BUY THE MILK.\r\n- [x] SELL" in out
    assert b"[^1]: IT IS RED.\r\n[^big-one]: IT IS VERY GREEN.\r\n" in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See <https://example.net>.", "SEE <https://example.net>."),
        ("Ask <info@example.com>, or <HTTP://Ä.example/%20b>!", "ASK <info@example.com>, OR <HTTP://Ä.example/%20b>!"),
        ("Some text  \nand more", "SOME TEXT  \nAND MORE"),
        ("> Some text\\\n> and more", "> SOME TEXT\\\n> AND MORE"),
        ("Some <br> text", "SOME <br> TEXT"),
        ("Look\\![here](a.png) now", "LOOK\\![HERE](a.png) NOW"),
        ('An ![old "map"](<a b.png> "A \\"map\\"") here', 'AN ![OLD "MAP"](<a b.png> "A \\"MAP\\"") HERE'),
        ("![Only a picture][p]\n\n[p]: a.png", "![ONLY A PICTURE][p]\n\n[p]: a.png"),
        ("See [the map][p], [p] and [P][].\n\n[p]: /ü(1).png 'T'", "SEE [THE MAP][p], [P][p] AND [P][p].\n\n[p]: /ü(1).png 'T'"),
        ("A [b](/ü_(1)) c", "A [B](/ü_(1)) C"),
        ("| a `x \\| y` | ![b \\| c](d) |\n|---|---|", "| A `x \\| y` | ![B \\| C](d) |\n|---|---|"),
        ("Not &lt; but &amp;lt; and ~~old~~ \\~~", "NOT < BUT \\&LT; AND ~~OLD~~ \\~\\~"),
        ("\\> no quote", "\\> NO QUOTE"),
        ("[^a]: a", "[^a]: A"),
    ],
)
def test_addresses_and_signs_are_written_as_they_were(tmp_path: Path, text: str, expected: str) -> None:
    out, _ = through(tmp_path, "a.md", text, shout())
    assert out.decode() == expected


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("At _home_ now", [(0, "在"), (1, "家"), (2, "里")], "在*家*里"),
        ("At __home__ now", [(0, "在"), (1, "家"), (2, "里")], "在**家**里"),
        ("**Stop,** then", [(0, "停，"), (1, "然后")], "**停**，然后"),
        ("**(Stop)** then **go** on", [(0, "（停）"), (1, "再"), (2, "走"), (3, "吧")], "（**停**）再**走**吧"),
        ("Do **(stop)** then", [(0, "请"), (1, "（停）"), (2, "吧")], "请（**停**）吧"),
        ("*Old* **cow**", [(0, "老"), (1, "牛")], "*老***牛**"),
        ("Some :tada: text", [(0, "一"), (2, "文")], "一:tada:文"),
        ("**A** **B**", [(0, "甲"), (1, "乙")], "**甲乙**"),
    ],
)
def test_emphasis_is_read_between_letters_without_spaces(
    tmp_path: Path, text: str, said: list[tuple[int, str]], expected: str
) -> None:
    out, _ = through(tmp_path, "a.md", text, Words(lambda words: said, target="zh", joint=""))
    result = out.decode()
    assert result == expected
    inline = github_parser().parse(result)[1].children or []
    assert sum(child.type == "strong_open" for child in inline) == expected.count("**") // 2


FRAGMENTS = st.sampled_from(
    [
        "some words", "*old*", "__new__", "~~gone~~", "`a * b`", "`` ` ``", "[a link](http://a.b/c_d 'tip')", "<https://x.y/_>",
        "![a map](m.png)", "[^1]", ":tada:", "\\*", "a_b", "2 * 3", "1. one", "# no", "&copy; &amp;lt;", "<b>x</b>", "[x]", "!",
        "[text][r]", "[r]", "end.", "a  \nb", "a\\\nb", "a\nb", "+ b", "\\> c", "<br>", "me@a.b", "(_so_)", "**a *b* c**", "\\_x_",
    ]
)  # fmt: skip
BLOCKS = st.tuples(
    st.sampled_from(["{}", "# {}", "> {}", "- {}", "- [ ] {}", "3. {}", "> [!NOTE]\n> {}", "[^1]: {}", "| {} | b |\n|---|---|"]),
    st.lists(FRAGMENTS, min_size=1, max_size=4),
    st.sampled_from([" ", ", ", " - "]),
)


def document(blocks: list[tuple[str, list[str], str]]) -> str:
    results = []
    for form, fragments, joint in blocks:
        text = joint.join(fragments)
        text = text.replace("  \n", " ").replace("\\\n", " ").replace("\n", " ") if form[0] in "#|" else text
        text = text.replace("\n", "\n> ") if form.startswith(">") else text
        results.append(form.format(text.replace("|", "\\|") if form.startswith("|") else text))
    return "\n\n".join([*results, "[r]: /address 'A title'\n"])


def translated(text: str, translator: Translator, *, keep: bool = False) -> str:
    read = Markdown(TextFile(text, "utf-8"), Context("a.md", "en", translator.target))
    if keep:
        return read.build([None] * len(read.units)).decode()
    return read.build(translate_units(read.units, translator, TranslationCache(None, ""), Progress())).decode()


def meaning(text: str) -> list[tuple[Any, ...]]:
    """What a parser makes of a text, without letters' case and without line ends that are spaces."""
    results: list[tuple[Any, ...]] = []
    for token in github_parser().parse(text):
        if token.type != "inline":
            results.append((token.type, token.content if token.type == "fence" else ""))
            continue
        for child in token.children or []:
            what = " " if child.type == "softbreak" else child.content
            addresses = [str(child.attrs[name]) for name in ("href", "src") if name in child.attrs]
            if child.type in ("text", "softbreak"):
                if results and results[-1][0] == "text":
                    what = results.pop()[1] + what
                results.append(("text", what.casefold()))
            else:
                results.append((child.type, what.casefold(), *addresses))
    bare = [("text", "".join(item[1].split())) if item[0] == "text" else item for item in results]
    return [item for item in bare if item != ("text", "")]


@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_any_markdown_comes_back_and_means_the_same(blocks: list[tuple[str, list[str], str]]) -> None:
    text = document(blocks)
    assert translated(text, identity()) == text
    assert translated(text, identity(), keep=True) == text
    result = translated(text, shout())
    assert meaning(result) == meaning(text), f"{text!r} -> {result!r}"
    # In another order every mark is there still.
    signs = sorted(item for item in meaning(text) if item[0] in ("code_inline", "footnote_ref", "html_inline"))
    assert sorted(item for item in meaning(translated(text, reverse())) if item[0] in {sign[0] for sign in signs}) == signs

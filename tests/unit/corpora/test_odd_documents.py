"""What a translator meets in documents that is no plain sentence: it stays, in its place, or goes with what it was about."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from lxml import etree

from tests.documents import docx, odt
from tests.translators import Words, reverse, shout
from tests.unit.workflows.test_documents import through


def dropping(*words: str) -> Words:
    """In capital letters, as a model does that knows no such words."""
    return Words(lambda sentence: [(k, word.upper()) for k, word in enumerate(sentence) if word not in words])


def translated(tmp_path: Path, name: str, text: str, translator: Words) -> str:
    return through(tmp_path, name, text, translator)[0].decode()


def test_readings_above_characters_go_with_them(tmp_path: Path) -> None:
    page = (
        "<p>The <ruby>house<rp>(</rp><rt>ie</rt><rp>)</rp></ruby> is <ruby>big<rt>oo</ruby> and "
        "<ruby><rb>red</rb><rt>a<i>k</i>a</rt></ruby>.</p><p>42<ruby>7<rt>x</rt></ruby></p>"
    )
    result = translated(tmp_path, "a.html", page, shout())
    assert result == (
        "<p>THE <ruby>HOUSE</ruby> IS <ruby>BIG</ruby> AND <ruby><rb>RED</rb></ruby>.</p><p>42<ruby>7<rt>x</rt></ruby></p>"
    ), "where nothing is translated they stay"


def test_parts_of_a_page_in_other_languages_stay(tmp_path: Path) -> None:
    page = (
        '<html lang="fr"><p lang="fr" title="un conseil">Bonjour le <b>monde</b>.</p><p lang="en-GB">Good day</p>'
        '<p lang="">Well then</p><p>He said <i lang="la">alea iacta est</i> to me</p></html>'
    )
    out, report = through(tmp_path, "a.html", page, shout())
    assert '<p lang="fr" title="un conseil">Bonjour le <b>monde</b>.</p>' in out.decode()
    assert '<p lang="de">GOOD DAY</p><p lang="">WELL THEN</p>' in out.decode()
    assert '<p>HE SAID <i lang="la">alea iacta est</i> TO ME</p>' in out.decode()
    assert report.kept == {"in another language": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("✓ Done", "✓ DONE"),
        ("I love you ♥ 😀", "I LOVE YOU ♥ 😀"),
        ("★★★ great, Acme™ says", "★★★ GREAT, ACME™ SAYS"),
        ("press ⏎ to go 👍🏽👩‍👧!", "PRESS ⏎ TO GO 👍🏽👩‍👧!"),
        ("© 2024 Acme", "© 2024 ACME"),
        ("5 × 6 → 30", "5 × 6 → 30"),
    ],
)
def test_pictures_are_not_given_to_the_model(tmp_path: Path, text: str, expected: str) -> None:
    translator = shout()
    assert translated(tmp_path, "a.html", f"<p>{text}</p>", translator) == f"<p>{expected}</p>"
    sent_text = "".join(sentence for batch in translator.asked for sentence in batch)
    assert not set("✓♥😀★™⏎👍©") & set(sent_text)


def test_pictures_in_written_tags_and_placeholders_are_parts_of_these(tmp_path: Path) -> None:
    page = "<p>You have {count, plural, one {a ★} other {# ★★}} at {{ '♥' }} ♥ now</p>"
    assert translated(tmp_path, "a.html", page, shout()) == page.replace("You have", "YOU HAVE").replace(" at ", " AT ").replace(
        "now", "NOW"
    )
    text = 'msgid "Rate it ★ <a title=\\"★ five\\">here</a> ★"\nmsgstr ""\n'
    result = translated(tmp_path, "a.po", text, shout())
    assert 'msgstr "RATE IT ★ <a title=\\"★ five\\">HERE</a> ★"\n' in result


def test_pictures_go_where_their_words_went(tmp_path: Path) -> None:
    result = translated(tmp_path, "a.html", "<p>rain ☔ and <b>sun</b> ☀</p>", reverse())
    assert result == "<p><b>SUN</b> AND RAIN ☔ ☀</p>", "and the last one stays the last"


def test_formulas_of_markdown_stay(tmp_path: Path) -> None:
    text = (
        "It costs $5 and then $6, or $7-$8.\n\nThe sum $\\alpha_i * x_1$ and $$\\int_0^1 x\\,dx$$ and $`a+b`$ is *low*.\n\n"
        "$$\nE = m * c * c\n$$\n"
    )
    result = translated(tmp_path, "a.md", text, shout())
    assert "COSTS $5 AND THEN $6, OR $7-$8." in result
    assert "THE SUM $\\alpha_i * x_1$ AND $$\\int_0^1 x\\,dx$$ AND $`a+b`$ IS *LOW*." in result
    assert result.endswith("$$\nE = m * c * c\n$$\n")


def test_dashes_of_speakers_stay_at_their_lines(tmp_path: Path) -> None:
    caption = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    text = caption.format("{\\an8}- Who is there?\n<i>- It is <b>me</b>.</i>")
    expected = caption.format("{\\an8}- WHO IS THERE?\n<i>- IT IS <b>ME</b>.</i>")
    assert translated(tmp_path, "a.srt", text, dropping("-")) == expected
    assert translated(tmp_path, "a.srt", caption.format("♪ We sing ♪"), shout()) == caption.format("♪ WE SING ♪")


def test_times_of_words_do_not_go_back(tmp_path: Path) -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:03.000\n<00:01.500>One <00:02.000><c>two</c> <00:02.500>three\n"
    result = translated(tmp_path, "a.vtt", text, reverse())
    times = [result.index(time) for time in ("<00:01.500>", "<00:02.000>", "<00:02.500>")]
    assert times == sorted(times)
    assert "<c>TWO</c>" in result


def test_a_catalog_that_is_written_in_another_encoding_says_so(tmp_path: Path) -> None:
    text = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n# \u00dcber\nmsgid "caf\u00e9"\nmsgstr ""\n'
    for word, encoding, charset in (("Caf\u00e9", "latin-1", "ISO-8859-1"), ("\u5496\u5561", "utf-8", "UTF-8")):
        out, _ = through(tmp_path, "a.po", text.encode("latin-1"), Words(lambda sentence, word=word: [(0, word)]))
        assert out.decode(encoding) == text.replace("ISO-8859-1", charset).replace('msgstr ""\n', f'msgstr "{word}"\n')


def test_readings_in_office_documents_go_with_their_characters(tmp_path: Path) -> None:
    def run(text: str) -> str:
        return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'

    ruby = f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('ie')}</w:rt><w:rubyBase>{run('house')}</w:rubyBase></w:ruby></w:r>"
    word = docx(f"<w:p>{run('The ')}{ruby}{run(' is red.')}</w:p>", tmp_path / "a.docx")
    out, _ = through(tmp_path, "b.docx", word.read_bytes(), shout())
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert "".join(etree.fromstring(archive.read("word/document.xml")).itertext()) == "THE HOUSE IS RED."

    ruby = "<text:ruby><text:ruby-base>house</text:ruby-base><text:ruby-text>ie</text:ruby-text></text:ruby>"
    writer = odt(f"<text:p>The {ruby} is red.</text:p>", tmp_path / "a.odt")
    out, _ = through(tmp_path, "b.odt", writer.read_bytes(), shout())
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert "".join(etree.fromstring(archive.read("content.xml")).itertext()) == "THE HOUSE IS RED."

"""Documents: what goes in comes out in the same format, with every tag and placeholder in its place."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.corpora.formats.documents.formats import is_document
from engine.corpora.formats.documents.model import DocumentError, DocumentOptions, Unit
from engine.corpora.formats.tagged_text import Tag, TaggedText, text_of
from engine.errors import Cancelled, CorpusError, StorageError
from engine.serving.units.translate import TranslationCache, Translator, translate_units
from engine.workflows.documents import DocumentReport, translate_document
from tests.documents import docx, odt
from tests.translators import Words, identity, reverse, shout


def through(folder: Path, name: str, data: str | bytes, translator: Translator, **options: object) -> tuple[bytes, DocumentReport]:
    """A document's translation, and the report."""
    file, output = folder / name, folder / f"out-{name}"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    report = translate_document(file, output, translator, options=DocumentOptions.from_mapping(options))
    return output.read_bytes(), report


def units_through(translator: Translator, *units: Unit) -> list[TaggedText]:
    return [result.parts for result in translate_units(units, translator, TranslationCache(None, ""), Progress())]


# -- sentences, placeholders, tags


def test_each_different_sentence_is_translated_once_without_its_tags() -> None:
    text = shout()
    parts: TaggedText = ["The door is ", Tag("open", 1), "open", Tag("close", 1), ". It is late."]
    result = units_through(text, Unit(parts), Unit(["It is late. The door is open."]), Unit(["42 – 43"]))
    assert sorted(sentence for batch in text.asked for sentence in batch) == ["It is late.", "The door is open."]
    assert result[0] == ["THE DOOR IS ", Tag("open", 1), "OPEN", Tag("close", 1), ". IT IS LATE."]
    assert result[1:] == [["IT IS LATE. THE DOOR IS OPEN."], ["42 – 43"]]


def test_a_pair_over_two_sentences_is_over_both_translations() -> None:
    parts: TaggedText = ["I came. ", Tag("open", 1), "I saw it. I won", Tag("close", 1), " all. It rained."]
    (result,) = units_through(reverse(), Unit(parts))
    assert result == ["CAME. I ", Tag("open", 1), "IT. SAW I ALL. WON I", Tag("close", 1), " RAINED. IT"] or result == [
        "CAME. I ", Tag("open", 1), "IT. SAW I", Tag("close", 1), " ALL. WON I RAINED. IT",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Delete %s from {folder}?", ["%s", "{folder}"]),
        ("See https://example.org/a_b?c=1. Then write to me@example.org!", ["https://example.org/a_b?c=1", "me@example.org"]),
        ("Hello {{ user.name }} and ${you}", ["{{ user.name }}", "${you}"]),
        ("You have %(count)d new of %d", ["%(count)d", "%d"]),
        ("It is {0:.2f} wide and {name!r} long", ["{0:.2f}", "{name!r}"]),
        ("{n, plural, one {# file} other {# files}} were found", ["{n, plural, one {# file} other {# files}}"]),
    ],
)
def test_placeholders_and_addresses_come_through(text: str, kept: list[str]) -> None:
    (result,) = units_through(reverse(), Unit([text]))
    translated = text_of(result)
    assert all(translated.count(placeholder) == 1 for placeholder in kept)
    assert translated != text
    assert not re.search(r"[XNTK]\d", translated)


def test_a_percent_sign_in_prose_is_no_placeholder() -> None:
    text = shout()
    units_through(text, Unit(["About 20 % dare to ask, 50% sure."]))
    assert text.asked == [["About 20 % dare to ask, 50% sure."]]


class Careless(Words):
    """Drops the words that it does not like."""

    def __init__(self, *dropped: str) -> None:
        super().__init__(lambda words: [(k, word.upper()) for k, word in enumerate(words) if not re.match("|".join(dropped), word)])


def test_a_lost_placeholder_is_tried_again_with_another_stand_in() -> None:
    text = Careless(r"X\d")
    (result,) = translate_units([Unit(["Delete %s now"])], text, TranslationCache(None, ""), Progress())
    assert result.parts == ["DELETE %s NOW"]
    assert result.doubt == ""
    assert text.asked == [["Delete X1 now"], ["Delete 250 now"]]


def test_what_is_lost_every_time_is_put_back_and_reported() -> None:
    text = Careless(r"[XNTK]\d", r"\d", "DNA", "NASA")
    (result,) = translate_units([Unit(["Delete %s now"])], text, TranslationCache(None, ""), Progress())
    assert text_of(result.parts).split() == ["DELETE", "%s", "NOW"]
    assert "%s was lost" in result.doubt


def test_a_mangled_stand_in_gives_its_place_to_the_placeholder() -> None:
    mangled = Words(lambda words: [(k, "11" if re.search(r"\d|DNA", word) else word.upper()) for k, word in enumerate(words)])
    (result,) = translate_units([Unit(["You have %d new messages."])], mangled, TranslationCache(None, ""), Progress())
    assert result.parts == ["YOU HAVE %d NEW MESSAGES."]
    assert "check its place" in result.doubt


def test_numbers_that_go_missing_are_reported() -> None:
    text = Words(lambda words: [(k, "187" if word == "1907" else word) for k, word in enumerate(words)])
    (result,) = translate_units([Unit(["Built in 1907 here"])], text, TranslationCache(None, ""), Progress())
    assert result.doubt == "The number 1907 is not in the translation."


WORDS = st.sampled_from(["open", "the", "door,", "%s", "{name}", "now.", "Then", "http://a.b/c", "5", "&", "雨停了。", "<b>"])


@st.composite
def units(draw: st.DrawFn) -> Unit:
    """Units with text, placeholders, nested pairs and lone tags of all sorts."""
    count = 0
    sorts: dict[str, set[int]] = {"word": set(), "break": set(), "beside": set()}

    def block(depth: int) -> TaggedText:
        nonlocal count
        results: TaggedText = []
        for _ in range(draw(st.integers(0, 4))):
            sort = draw(st.sampled_from(["text", "text", "word", "break", "beside", "pair"]))
            if sort == "text" or (sort == "pair" and not depth):
                space = draw(st.sampled_from(["", " ", "\n "]))
                results.append(space + " ".join(draw(st.lists(WORDS, max_size=6))) + space)
                continue
            count += 1
            number = count
            if sort == "pair":
                results += [Tag("open", number), *block(depth - 1), Tag("close", number)]
            else:
                sorts[sort].add(number)
                results.append(Tag("alone", number))
        return results

    parts = block(2)
    return Unit(parts, words=frozenset(sorts["word"]), breaks=frozenset(sorts["break"]))


def tags_of(parts: TaggedText) -> Counter[tuple[str, int]]:
    return Counter((part.kind, part.id) for part in parts if isinstance(part, Tag))


def nested(parts: TaggedText) -> bool:
    stack = []
    for part in parts:
        if isinstance(part, Tag) and part.kind == "open":
            stack.append(part.id)
        elif isinstance(part, Tag) and part.kind == "close" and (not stack or stack.pop() != part.id):
            return False
    return not stack


@given(units(), st.sampled_from(["de", "zh"]))
def test_any_unit_keeps_its_tags_and_placeholders(unit: Unit, target: str) -> None:
    (same,) = units_through(identity(target=target), unit)
    assert same == unit.parts, "what is not changed stays to the last space"
    for text in (reverse(target=target), Careless(r"[XNTK]\d", r"\d", "DNA")):
        text.target = target
        (result,) = units_through(text, unit)
        assert tags_of(result) == tags_of(unit.parts)
        assert nested(result)
        for placeholder in ("%s", "{name}", "http://a.b/c"):
            assert text_of(result).count(placeholder) == text_of(unit.parts).count(placeholder)


# -- stopping and going on


def test_a_stopped_document_goes_on_where_it_was(tmp_path: Path) -> None:
    class Stopping(Progress):
        def __init__(self, after: int) -> None:
            super().__init__()
            self.left = after

        def show(self, done: float, total: float | None, eta: float | None, note: str) -> None:
            if self.step == "Translating" and total:
                self.left -= 1
                if self.left < 0:
                    raise Cancelled("stop")

    file, output, partial = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "partial.jsonl"
    file.write_text("".join(f"Line number {k}.\n" for k in range(20)), encoding="utf-8")
    first = shout()
    with pytest.raises(Cancelled):
        translate_document(file, output, first, progress=Stopping(2), partial=partial)
    assert len(first.asked) == 2
    assert not output.exists()
    with partial.open("a", encoding="utf-8") as out:
        out.write('\n[["cut sho')  # a crash in the midst of a line
    second = shout()
    translate_document(file, output, second, partial=partial)
    assert len(second.asked) == 3
    assert first.asked + second.asked == [[f"Line number {k}." for k in range(b, b + 4)] for b in range(0, 20, 4)]
    assert output.read_text(encoding="utf-8").splitlines()[19] == "LINE NUMBER 19."
    assert not partial.exists()


def test_translations_of_another_translator_are_not_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "partial.jsonl"
    TranslationCache(file, "one").add([("a", "b")])
    assert TranslationCache(file, "one").translations == {"a": "b"}
    assert TranslationCache(file, "two").translations == {}
    assert not file.exists()


# -- what is refused


def archive(file: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return file


def test_bombs_entities_and_other_files_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "out"

    def refused(file: Path, words: str, **more: int) -> None:
        with pytest.raises((DocumentError, CorpusError), match=words) as error:
            translate_document(file, output, identity(), **more)
        assert str(error.value).endswith(".")
        assert not output.exists()

    refused(archive(tmp_path / "bomb.docx", {"word/document.xml": b"<a>" + b" " * (64 << 20) + b"</a>"}), "not opened")
    entities = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><xliff version="1.2">&d;</xliff>'
    (tmp_path / "a.xlf").write_bytes(entities)
    refused(tmp_path / "a.xlf", "declares XML entities")
    (tmp_path / "b.xlf").write_bytes(entities.decode().encode("utf-16"))
    refused(tmp_path / "b.xlf", "declares XML entities")
    (tmp_path / "c.xlf").write_text("<xliff><file></xliff>")
    refused(tmp_path / "c.xlf", "damaged")
    (tmp_path / "d.docx").write_bytes(b"\xd0\xcf\x11\xe0 old")
    refused(tmp_path / "d.docx", "older format")
    refused(archive(tmp_path / "e.docx", {"xl/workbook.xml": b"<a/>"}), "not a Word document")
    (tmp_path / "f.pdf").write_bytes(b"%PDF")
    refused(tmp_path / "f.pdf", "in no format")
    (tmp_path / "g.txt").write_text("a long text")
    refused(tmp_path / "g.txt", "allowed", most_bytes=4)
    refused(tmp_path / "none.docx", "does not exist")
    (tmp_path / "h.docx").mkdir()
    refused(tmp_path / "h.docx", "folder")


def damaged_member(file: Path, name: str) -> Path:
    """The archive with a byte of a member's packed content changed, and its checksum as it was."""
    data = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        member = archive.getinfo(name)
    begin = member.header_offset + 30 + len(name)
    data[begin : begin + 12] = b"\xff" * 12
    file.write_bytes(data)
    with zipfile.ZipFile(file) as broken, pytest.raises((zipfile.BadZipFile, zlib.error)):
        broken.read(name)
    return file


def packed_bytes(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        member = archive.getinfo(name)
    begin = member.header_offset + 30 + len(name)
    return data[begin : begin + member.compress_size]


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize(
    ("make", "text", "part", "extra"),
    [
        (docx, "<w:p><w:r><w:t>The red house</w:t></w:r></w:p>", "word/document.xml", "word/media/image1.png"),
        (docx, "<w:p><w:r><w:t>The red house</w:t></w:r></w:p>", "word/document.xml", "word/styles.xml"),
        (odt, "<text:p>The red house</text:p>", "content.xml", "Pictures/1.jpg"),
        (odt, "<text:p>The red house</text:p>", "content.xml", "META-INF/manifest.xml.sig"),
    ],
)
def test_a_damaged_part_that_is_no_text_is_copied_byte_for_byte(
    tmp_path: Path, make: Any, text: str, part: str, extra: str, packing: int
) -> None:
    file = make(text, tmp_path / f"a.{make.__name__}")
    with zipfile.ZipFile(file, "a") as more:
        more.writestr(extra, bytes(range(256)) * 20, compress_type=packing)
        more.writestr("last.bin", b"whole" * 100, compress_type=packing)
    damaged_member(file, extra)
    output = tmp_path / f"b.{make.__name__}"
    translate_document(file, output, shout())
    with zipfile.ZipFile(output) as result:
        assert b"THE RED HOUSE" in result.read(part)
        assert result.read("last.bin") == b"whole" * 100
        assert result.namelist() == zipfile.ZipFile(file).namelist()
    assert packed_bytes(output.read_bytes(), extra) == packed_bytes(file.read_bytes(), extra)


def test_members_written_as_a_stream_are_copied_whole(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        """A target that cannot go back: the sizes come after the data."""

        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

    pipe, source = Pipe(), odt("<text:p>The red house</text:p>", tmp_path / "x.odt")
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as new, zipfile.ZipFile(source) as old:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("Pictures/ä.png", b"picture" * 99)
    (tmp_path / "a.odt").write_bytes(pipe.data)
    translate_document(tmp_path / "a.odt", tmp_path / "b.odt", shout())
    with zipfile.ZipFile(tmp_path / "b.odt") as result:
        assert result.testzip() is None
        assert b"THE RED HOUSE" in result.read("content.xml")
        assert result.read("Pictures/ä.png") == b"picture" * 99


def test_a_document_that_cannot_be_rebuilt_keeps_its_translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.corpora.formats.documents.odt import Odt

    file, partial = odt("<text:p>The red house</text:p>", tmp_path / "a.odt"), tmp_path / "partial.jsonl"
    first, again = shout(), shout()
    with monkeypatch.context() as broken:
        broken.setattr(Odt, "build", lambda self, results: results[99])
        with pytest.raises(DocumentError, match="could not be reassembled") as error:
            translate_document(file, tmp_path / "b.odt", first, partial=partial)
    assert str(error.value).endswith(".")
    assert error.value.code.startswith("name-was-translated-but-the-document-could-not")
    assert error.value.params["kind"] == "IndexError"
    assert not (tmp_path / "b.odt").exists()
    translate_document(file, tmp_path / "b.odt", again, partial=partial)
    assert (len(first.asked), again.asked) == (1, [])
    assert not partial.exists()


@pytest.mark.parametrize("count", ["²", "-1", "1e9", "9" * 5000, "٣", ""])
def test_a_count_of_spaces_that_is_no_number_is_one_space(tmp_path: Path, count: str) -> None:
    file = odt(f'<text:p>The<text:s text:c="{count}"/>red house</text:p>', tmp_path / "a.odt")
    translate_document(file, tmp_path / "b.odt", shout())
    assert "THE RED HOUSE" in zipfile.ZipFile(tmp_path / "b.odt").read("content.xml").decode()


def test_an_output_that_cannot_be_written_is_known_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.")
    text = shout()
    with pytest.raises(StorageError):
        translate_document(tmp_path / "a.txt", tmp_path / "a.txt" / "b.txt", text)
    assert text.asked == []


def test_report_is_plain_data(tmp_path: Path) -> None:
    _, report = through(tmp_path, "a.txt", "Built in 1907.\nNo more.\n", Careless("19"))
    why = "The number 1907 is not in the translation."
    doubt = {"place": "line 1", "source": "Built in 1907.", "translation": "BUILT IN", "why": why}
    assert json.loads(json.dumps(report.to_mapping()))["doubts"] == [doubt]
    assert (report.title, report.units, report.doubtful) == ("text file", 2, 1)
    assert is_document("a.DOCX")
    assert not is_document("a.txt")

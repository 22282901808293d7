"""Detecting the encoding of a text file: byte order marks, then UTF-8, then charset-normalizer and the project's languages.

Single-byte encodings cannot be distinguished by their bytes (é in CP1252 is é in CP1250, but è is č), so the languages of the
project are taken into account. A file that is not text is refused with a message that states what it is.
"""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine.corpora.language import base_language
from engine.errors import CorpusError
from engine.messages import Message, mark

CHUNK = 1 << 20  # bytes read at a time: memory stays bounded for any file
TELLING = 16  # non-ASCII bytes from which a guess takes precedence over the order in LEGACY
SAMPLE = 1 << 18  # bytes from which a legacy encoding is guessed

MARKS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

MAGIC = (
    (b"%PDF", mark("a PDF document")),
    (b"\x1f\x8b", mark("a gzip archive")),
    (b"BZh", mark("a bzip2 archive")),
    (b"\xfd7zXZ\x00", mark("an xz archive")),
    (b"7z\xbc\xaf\x27\x1c", mark("a 7-Zip archive")),
    (b"Rar!\x1a\x07", mark("a RAR archive")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", mark("an old Microsoft Office document")),
    (b"{\\rtf", mark("an RTF document")),
)
MEDIA = mark("a sound or video file")
TEXTLESS = (  # files from which no text can be saved
    (b"\x89PNG\r\n", mark("a PNG image")),
    (b"\xff\xd8\xff", mark("a JPEG image")),
    (b"GIF8", mark("a GIF image")),
    (b"SQLite format 3\x00", mark("an SQLite database")),
    (b"\x7fELF", mark("a program")),
    (b"ID3", mark("a sound file")),
    (b"OggS", MEDIA),
)

OFFICE = (
    ("word/", mark("a Word document (docx)")),
    ("xl/", mark("an Excel workbook (xlsx)")),
    ("ppt/", mark("a PowerPoint presentation (pptx)")),
    ("META-INF/container.xml", mark("an e-book (EPUB)")),
    ("content.xml", mark("an OpenDocument file")),
)

LATIN = "cp1252"
# Encodings in which broken characters can be detected, as not every byte is a character. Line ends are the same in all of them.
MULTIBYTE = ("gb18030", "big5", "cp932", "euc_jp", "cp949")
PASTED = 0.1  # largest share of lines in another encoding
LEGACY = {
    "zh": ("gb18030", "big5"),
    "ja": ("cp932", "euc_jp", "iso2022_jp"),
    "ko": ("cp949",),
    "ru": ("cp1251", "koi8_r"),
    "uk": ("cp1251", "koi8_u"),
    "bg": ("cp1251",),
    "sr": ("cp1251", "cp1250"),
    "el": ("cp1253",),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "fa": ("cp1256",),
    "th": ("cp874",),
    "vi": ("cp1258",),
    **dict.fromkeys(("lt", "lv", "et"), ("cp1257",)),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "ro", "hr", "sl", "bs", "sq"), ("cp1250",)),
    **dict.fromkeys(("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "nb", "no", "fi", "is", "ca", "gl"), (LATIN,)),
}
# The non-ASCII letters and signs of text in CP1252, without Š Ž Ÿ and the like, which indicate CP1250.
WESTERN = set("äöüÄÖÜßéèêëàâçîïôûùœæÉÈÊËÀÂÇÎÏÔÛÙŒÆñÑáíóúÁÍÓÚãõÃÕåÅøØðþÐÞìòÌÒ¿¡«»„“”‘’‚‹›–—…•°§€£©®™ºª²³½·¨´\xa0\xad")


def check_there(path: Path) -> None:
    """Raise CorpusError unless `path` is an existing regular file."""
    if path.is_dir():
        raise CorpusError("{path} is a folder; choose the files in it.", path=path)
    if not path.exists():
        raise CorpusError("{path} does not exist; check the name and the folder.", path=path)
    if not path.is_file():
        raise CorpusError("{path} is not a regular file; save the text to a file first.", path=path)


def check_file(path: Path) -> int:
    """The size of a readable, non-empty file in bytes. Raises CorpusError stating the problem otherwise."""
    check_there(path)
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise CorpusError(
            "{path} cannot be read: {strerror}; check its permissions.", path=path, strerror=error.strerror or error
        ) from None
    size = path.stat().st_size
    if size == 0:
        raise CorpusError("{path} is empty; choose a file that holds sentences.", path=path)
    return size


def detect_encoding(path: Path, languages: Sequence[str] = ()) -> str:
    """Python's name for the encoding of the text file `path`, with `languages` (codes) as a hint for legacy encodings.

    Raises CorpusError if the file is missing, empty or not text, or if its encoding cannot be identified.
    """
    check_file(path)
    with path.open("rb") as file:
        head = file.read(SAMPLE)
    for start, name in MARKS:
        if head.startswith(start):
            if len(head) == len(start):
                raise CorpusError("{path} is empty; choose a file that holds sentences.", path=path)
            text = head.decode(name, errors="replace")
            if text.count("�") * 10 >= len(text):
                raise CorpusError("{path} is binary data, not text; provide a text file, preferably in UTF-8.", path=path)
            return name
    _refuse_known_formats(path, head)
    utf8 = _utf8(path)
    if utf8:
        return utf8
    return _legacy(path, languages)


def _refuse_known_formats(path: Path, head: bytes) -> None:
    textless = next((kind for magic, kind in TEXTLESS if head.startswith(magic)), "")
    if head[4:8] == b"ftyp":
        textless = MEDIA
    if textless:
        raise CorpusError("{path} is {what}, not text. Provide a text file.", path=path, what=Message(textless))
    for magic, kind in MAGIC:
        if head.startswith(magic):
            raise CorpusError(
                "{path} is {what}, not text; save its text as a UTF-8 text file and use that.", path=path, what=Message(kind)
            )
    if head.startswith(b"PK\x03\x04"):
        kind = mark("a zip archive")
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
            kind = next((name for part, name in OFFICE if any(item.startswith(part) for item in names)), kind)
        except (zipfile.BadZipFile, OSError):
            pass
        raise CorpusError(
            "{path} is {what}, not text; save its text as a UTF-8 text file and use that.", path=path, what=Message(kind)
        )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _utf8(path: Path) -> str | None:
    """`utf-8` if the file is UTF-8 apart from a few broken characters (their lines are skipped later), otherwise None."""
    strict = _is_strict_utf8(path)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    broken = foreign = controls = total = 0
    for chunk in _chunks(path):
        text = decoder.decode(chunk)
        total += len(text)
        controls += _controls(text)
        if not strict:
            broken += text.count("�")
            foreign += sum(c > "\x7f" for c in text)
    if _is_binary(controls, total):
        return None
    # In real UTF-8, a broken character is among many valid ones; bytes of legacy encodings hardly ever form a valid one.
    return "utf-8" if strict or broken * 20 <= foreign - broken else None


def _is_strict_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        for chunk in _chunks(path):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _controls(text: str) -> int:
    return sum(text.count(chr(code)) for code in (*range(9), 11, *range(14, 32), 127))


def _is_binary(controls: int, total: int) -> bool:
    # Real text may have a stray control character; in binary data, a tenth or more of all bytes are control characters.
    return controls > 3 and controls * 200 > total


def _legacy(path: Path, languages: Sequence[str]) -> str:
    sample = _telling_sample(path)
    guess = _guess(sample)
    if guess and guess.startswith(("utf_16", "utf_32")) and b"\x00" not in sample:
        guess = None  # without ASCII line ends, spaces or letters, these are pairs of bytes in another encoding
    if b"\x00" in sample:
        candidates = [_utf16(sample)]
    elif guess and guess.startswith("utf_"):
        candidates = [guess]
    else:
        expected = _wanted(languages)
        trusted = guess in expected and sum(byte > 127 for byte in sample) >= TELLING
        candidates = [guess, *expected] if trusted else [*expected, guess]
    for name in filter(None, candidates):
        text = _decode(sample, name)
        if text is not None and (name == guess or _plausible(text, name)) and _decodes(path, name):
            return name
    if b"\x00" not in sample:
        for name in _wanted(languages):
            if name in MULTIBYTE and _but_for_a_few_lines(sample, name):
                return name
    if b"\x00" in sample or guess is None:
        raise CorpusError("{path} is binary data, not text; provide a text file, preferably in UTF-8.", path=path)
    raise CorpusError("The encoding of {path} cannot be detected; save it as UTF-8 and try again.", path=path)


def _wanted(languages: Sequence[str]) -> list[str]:
    """The legacy encodings of these languages."""
    return list(dict.fromkeys(name for code in languages for name in LEGACY.get(base_language(code), ())))


def _but_for_a_few_lines(sample: bytes, name: str) -> bool:
    """Whether this is text in that encoding with a few lines pasted from another; those lines are skipped later."""
    lines = sample.decode(name, errors="replace").splitlines()
    intact = [line for line in lines if "�" not in line]
    text = "\n".join(intact)
    return len(lines) - len(intact) <= PASTED * len(lines) and _texty(text) and _plausible(text, name)


def _telling_sample(path: Path) -> bytes:
    """The parts of the file with non-ASCII bytes, with the text around them, up to SAMPLE bytes."""
    parts: list[bytes] = []
    size = 0
    for chunk in _chunks(path):
        if not chunk.isascii() or b"\x00" in chunk:
            first = next(i for i, byte in enumerate(chunk) if byte > 127 or byte == 0)
            start = chunk.rfind(b"\n", 0, first) + 1  # from the start of the line, so as not to split two-byte codes
            if b"\x00" in chunk:
                start = 0
            parts.append(chunk[start : start + SAMPLE])
            size += len(parts[-1])
        if size >= SAMPLE // 2:
            break
    return b"".join(parts)[:SAMPLE]


def _guess(sample: bytes) -> str | None:
    import logging

    from charset_normalizer import from_bytes

    logging.getLogger("charset_normalizer").setLevel(logging.ERROR)
    best = from_bytes(sample).best()
    return best.encoding if best else None


def _utf16(sample: bytes) -> str | None:
    """The UTF-16 variant of a sample without a byte order mark, by the side of its zero bytes; None if it is not UTF-16 text."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    name = "utf_16_be" if even > odd else "utf_16_le"
    text = _decode(sample[: len(sample) // 2 * 2], name)
    return name if text and "\x00" not in text and _texty(text) else None


def _decode(sample: bytes, name: str) -> str | None:
    """The decoded sample if it is text and at most 0.1 % of its characters are broken, otherwise None; its end may be cut off."""
    try:
        text = codecs.getincrementaldecoder(name)("replace").decode(sample)
    except (UnicodeError, LookupError):
        return None
    return text if text.count("�") * 1000 <= len(text) and _texty(text) else None


def _texty(text: str) -> bool:
    letters = sum(c.isalnum() or c.isspace() for c in text)
    return not _is_binary(_controls(text), len(text)) and letters * 2 >= len(text)


def _decodes(path: Path, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(name)("replace")
    broken = total = 0
    for chunk in _chunks(path):
        try:
            text = decoder.decode(chunk)
        except UnicodeError:  # UTF-16 without a byte order mark, for which "replace" does not help
            return False
        broken, total = broken + text.count("�"), total + len(text)
    return broken * 1000 <= total


def _plausible(text: str, name: str) -> bool:
    """Whether the non-ASCII characters look like text in this encoding rather than like misread bytes."""
    foreign = [c for c in text if c > "\x7f"]
    if not foreign:
        return True
    return _share(foreign, name) >= 0.9


def _share(foreign: Sequence[str], name: str) -> float:
    if name == LATIN:
        return sum(c in WESTERN for c in foreign) / len(foreign)
    if name in ("gb18030", "big5"):
        return _common_hanzi(foreign, name)
    if name in ("cp1251", "koi8_r", "koi8_u"):
        # CP1251 and KOI8 misread as each other are also Cyrillic, but with upper and lower case swapped.
        letters = [c for c in foreign if "Ѐ" <= c <= "ӿ"]
        small = sum(c.islower() for c in letters)
        return 0.0 if small * 2 < len(letters) else len(letters) / len(foreign) + 0.1
    return sum(c.isalpha() for c in foreign) / len(foreign) + 0.1


def _common_hanzi(foreign: Iterable[str], name: str) -> float:
    """Share of the hanzi that are on the first level of the standard: GB 2312 rows 16 to 55, Big5 A440 to C67E."""
    standard, low, high = ("gb2312", 0xB0, 0xD7) if name == "gb18030" else ("big5", 0xA4, 0xC6)
    hanzi = [c for c in foreign if "㐀" <= c <= "鿿"]
    if not hanzi:
        return 0.0
    common = 0
    for c in hanzi:
        code = c.encode(standard, "ignore")
        common += bool(code) and low <= code[0] <= high
    return common / len(hanzi)

"""Gettext PO files: untranslated and fuzzy entries, including plural forms, get a msgstr; all other lines are preserved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from engine.core.languages import language_message, primary_language
from engine.core.numerals import whole_number
from engine.corpora.formats.documents.files import TextDocument, TextFile
from engine.corpora.formats.documents.model import Context, DocumentError, Result, Unit
from engine.corpora.formats.tagged_text import text_of
from engine.messages import Message

CHARSET = re.compile(r"charset=([\w.:-]+)", re.ASCII)
KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s+(\".*\")\s*$")
MOST_FORMS = 10  # of a plural; no language has more than 6
STRING = re.compile(r"\"([^\"\\]*+(?:\\.[^\"\\]*+)*)\"\s*+$")
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
SIGNS = {sign: code for code, sign in SIMPLE.items()}
WIDTH = 76  # columns of a wrapped line, as in gettext
# (number of plural forms, rule) by target language, from gettext's manual.
PLURALS = {
    **dict.fromkeys(["zh", "ja", "ko", "vi", "th", "id", "ms", "lo", "my"], (1, "0")),
    **dict.fromkeys(["fr", "pt-BR"], (2, "(n > 1)")),
    **dict.fromkeys(
        ["ru", "uk", "be", "sr", "hr", "bs"],
        (3, "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    ),
    "pl": (3, "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"),
    **dict.fromkeys(["cs", "sk"], (3, "(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2")),
    "ar": (6, "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"),
}
# The kinds of placeholders that a flag stands for.
FLAGS = {
    "python-format": ("plain", "named", "printf-strict"),
    "python-brace-format": ("plain",),
    "perl-brace-format": ("plain",),
    "qt-format": ("plain", "qt"),
    "qt-plural-format": ("plain", "qt"),
    "kde-format": ("plain", "qt"),
    "sh-format": ("plain", "variable"),
    "ruby-format": ("plain", "printf", "numbered"),
}
NUMBERED = ("plain", "printf", "numbered")  # c-format and similar flags


@dataclass
class PoEntry:
    """One entry: its texts and their line numbers (from 0) in the file."""

    start: int  # the line of its first keyword
    flags_line: int | None = None
    flags: list[str] = field(default_factory=list)
    previous: list[int] = field(default_factory=list)  # lines `#| msgid`
    texts: dict[str, str] = field(default_factory=dict)  # msgctxt, msgid, msgid_plural, msgstr, msgstr[0] …
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)
    units: list[tuple[int, str]] = field(default_factory=list)  # (unit, key of texts)


class Po(TextDocument):
    """A PO file, or a template (POT)."""

    title: ClassVar[str] = "PO file"

    def __init__(self, file: TextFile, context: Context) -> None:
        super().__init__(file, context)
        self.lines, self.end = file.lines()
        self.wide = max((len(line) for line in self.lines if line.startswith('"')), default=0) > 100
        self.header: PoEntry | None = None
        self.entries = self._read()
        if not self.entries and self.header is None:
            raise DocumentError("{context} is not a PO file: there is no msgid in it.", context=context.name)
        self.forms, self.fresh_header = self._plural_forms()
        for entry in self.entries:
            self._add(entry)

    @classmethod
    def declared(cls, head: bytes) -> str:
        charset = CHARSET.search(head.decode("latin-1"))
        name = charset[1] if charset else ""
        return "" if name.upper() == "CHARSET" else name

    def _read(self) -> list[PoEntry]:
        entries: list[PoEntry] = []
        entry = PoEntry(-1)
        key = ""

        def close() -> None:
            nonlocal entry
            if "msgid" in entry.texts:
                if entry.texts["msgid"] == "" and "msgctxt" not in entry.texts:
                    self.header = entry
                else:
                    entries.append(entry)
            entry = PoEntry(-1)

        for number, raw in enumerate(self.lines):
            line = raw.strip()
            match = KEYWORD.match(line)
            if match and entry.texts and (match[1] == "msgctxt" or (match[1] == "msgid" and "msgid" in entry.texts)):
                close()  # no empty line between two entries
            if match:
                key = match[1]
                if entry.start < 0:
                    entry.start = number
                entry.texts[key] = self._string(match[3], number)
                entry.lines[key] = (number, number + 1)
            elif line.startswith('"'):
                if not key or key not in entry.texts:
                    raise DocumentError(
                        "{context}, line {number}: this text does not belong to any entry.",
                        context=self.context.name,
                        number=number + 1,
                    )
                entry.texts[key] += self._string(line, number)
                entry.lines[key] = (entry.lines[key][0], number + 1)
            else:
                if entry.texts:
                    close()
                key = ""
                if line.startswith("#,"):
                    entry.flags_line = number
                    entry.flags = [flag.strip() for flag in line[2:].split(",") if flag.strip()]
                elif line.startswith("#|"):
                    entry.previous.append(number)
                elif line and not line.startswith("#"):
                    raise DocumentError(
                        "{context}, line {number} is not a line of a PO file: {line}",
                        context=self.context.name, number=number + 1, line=line[:40],
                    )  # fmt: skip
                elif not line:
                    entry = PoEntry(-1)
        close()
        return entries

    def _string(self, quoted: str, number: int) -> str:
        match = STRING.match(quoted)
        if not match:
            raise DocumentError(
                "{context}, line {number}: a quotation mark is missing or one too many.",
                context=self.context.name,
                number=number + 1,
            )
        return ESCAPE.sub(_unescaped, match[1])

    def _plural_forms(self) -> tuple[int, str | None]:
        """(number of plural forms, the header's new text or None if it is complete)."""
        text = self.header.texts.get("msgstr", "") if self.header else ""
        match = re.search(r"nplurals\s*=\s*(\d+)", text)
        forms, rule = PLURALS.get(self.context.target) or PLURALS.get(primary_language(self.context.target)) or (2, "(n != 1)")
        new_text = text
        language = re.search(r"^Language:[ \t]*(\S*)", text, re.MULTILINE)
        if language and language[1] and primary_language(language[1]) != primary_language(self.context.target):
            raise DocumentError(
                "{context} is to be translated into {language}, not into {target}. Choose a base or project of its "
                "languages.",
                context=self.context.name, language=language_message(language[1]), target=language_message(self.context.target),
            )  # fmt: skip
        if language and not language[1]:
            new_text = new_text.replace(language[0], f"Language: {self.context.target.replace('-', '_')}", 1)
        if "charset=CHARSET" in new_text:
            new_text = new_text.replace("charset=CHARSET", "charset=UTF-8")
        if match:
            return whole_number(match[1], 1, MOST_FORMS) or forms, new_text if new_text != text else None
        line = f"Plural-Forms: nplurals={forms}; plural={rule};\n"
        if re.search(r"^Plural-Forms:.*\n", new_text, re.MULTILINE):
            new_text = re.sub(r"^Plural-Forms:.*\n", lambda m: line, new_text, flags=re.MULTILINE)
        elif new_text and any("msgid_plural" in entry.texts for entry in self.entries):
            new_text += line
        return forms, new_text if new_text != text else None

    def _add(self, entry: PoEntry) -> None:
        fuzzy = "fuzzy" in entry.flags
        done = all(text for key, text in entry.texts.items() if key.startswith("msgstr"))
        if done and not fuzzy and not self.context.options.retranslate:
            self.skipped[Message("translated before")] += 1
            return
        singular, plural = entry.texts["msgid"], entry.texts.get("msgid_plural")
        texts = [("msgstr", singular)]
        if plural is not None:
            texts = [(f"msgstr[{i}]", singular if i == 0 and self.forms > 1 else plural) for i in range(self.forms)]
        kinds = next((FLAGS[flag] for flag in entry.flags if flag in FLAGS), None)
        numbered = any(flag.endswith("-format") and not flag.startswith("no-") for flag in entry.flags)
        for key, text in texts:
            if not text.strip():
                continue
            entry.units.append((len(self.units), key))
            self.units.append(
                Unit(
                    [text],
                    f"line {entry.start + 1}",
                    placeholders=kinds or (NUMBERED if numbered else ("plain",)),
                    shortcut="_" if re.search(r"(?<!\w)_[^\W\d_]", text) else "&",
                    keep_lines=True,
                    keep_tabs=True,
                )
            )

    def build(self, results: Sequence[Result | None]) -> bytes:
        edits: list[tuple[int, int, list[str]]] = []
        for entry in self.entries:
            entry_results = {key: results[i] for i, key in entry.units}
            texts = {key: text_of(result.parts) for key, result in entry_results.items() if result is not None}
            if not texts:
                continue
            doubtful = self.context.options.review or any(result.doubt for result in entry_results.values() if result)
            # With three or more forms, several plural forms are translated from the only plural of the source.
            doubtful = doubtful or len(entry_results) > 2
            edits += self._flags(entry, doubtful)
            edits += self._strings(entry, texts)
        if not edits:
            return self.file.encoded(self.file.text)
        if self.header and self.fresh_header is not None:
            edits.append((*self.header.lines["msgstr"], self._written("msgstr", self.fresh_header)))
            if "fuzzy" in self.header.flags:  # a template's header
                edits += self._flags(self.header, False)
        lines = list(self.lines)
        for start, end, new_lines in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            lines[start:end] = new_lines
        text = "".join(lines)
        try:
            text.encode(self.file.encoding)
        except UnicodeEncodeError:  # the file will be written as UTF-8, so declare that
            text = CHARSET.sub("charset=UTF-8", text, count=1)
        return self.file.encoded(text)

    def _strings(self, entry: PoEntry, texts: dict[str, str]) -> list[tuple[int, int, list[str]]]:
        keys = [key for key in entry.lines if key.startswith("msgstr")]
        start = min(entry.lines[key][0] for key in keys) if keys else max(end for _, end in entry.lines.values())
        end = max(entry.lines[key][1] for key in keys) if keys else start
        everything = {**{key: entry.texts[key] for key in keys}, **texts}
        if "msgid_plural" in entry.texts:
            form_keys = {f"msgstr[{i}]" for i in range(self.forms)}  # a template has two forms, whatever the language
            everything = {key: text for key, text in everything.items() if key in form_keys}
        return [(start, end, [line for key in sorted(everything) for line in self._written(key, everything[key])])]

    def _flags(self, entry: PoEntry, fuzzy: bool) -> list[tuple[int, int, list[str]]]:
        """The edits that set or remove the fuzzy flag of an entry."""
        if fuzzy == ("fuzzy" in entry.flags):
            return [] if fuzzy else [(line, line + 1, []) for line in entry.previous]
        flags = ["fuzzy", *entry.flags] if fuzzy else [flag for flag in entry.flags if flag != "fuzzy"]
        flag_lines = [f"#, {', '.join(flags)}{self.end}"] if flags else []
        dropped: list[tuple[int, int, list[str]]] = [] if fuzzy else [(line, line + 1, []) for line in entry.previous]
        if entry.flags_line is None:
            position = min([entry.start, *entry.previous])
            return [(position, position, flag_lines), *dropped]
        return [(entry.flags_line, entry.flags_line + 1, flag_lines), *dropped]

    def _written(self, key: str, text: str) -> list[str]:
        """The lines of a text, wrapped as by gettext unless the file's lines are not wrapped."""
        pieces = [piece for piece in re.split(r"(?<=\n)", text) if piece]
        quoted = [_escaped(piece) for piece in pieces]
        if len(pieces) <= 1 and (self.wide or len(key) + 3 + len("".join(quoted)) <= WIDTH + 2):
            return [f'{key} "{"".join(quoted)}"{self.end}']
        if not self.wide:
            quoted = [line for piece in quoted for line in _wrapped(piece)]
        return [f'{key} ""{self.end}', *(f'"{line}"{self.end}' for line in quoted)]


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code in SIMPLE:
        return SIMPLE[code]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else "\\" + code


def _escaped(text: str) -> str:
    return "".join(f"\\{SIGNS[c]}" if c in SIGNS else c for c in text)


def _wrapped(text: str) -> list[str]:
    """Escaped text in lines of at most WIDTH columns, broken after spaces or between wide characters."""
    lines, line, used = [], "", 0
    for word in re.findall(r"[^\s\u2e80-\uffff]*(?:[\u2e80-\uffff][，。、；：！？”』」）]*|\s+|$)", text):
        size = sum(2 if c > "\u2e7f" else 1 for c in word)
        if (line and used + len(word.rstrip()) > WIDTH) or (used + size > WIDTH + 1 and line):
            lines.append(line)
            line, used = "", 0
        line, used = line + word, used + size
    return [*lines, line] if line else lines

"""The lines of a text to translate, in any encoding; every line is kept, so that the output has one line per input line."""

from __future__ import annotations

import sys
from pathlib import Path

from engine.corpora.formats.encoding import check_file, detect_encoding
from engine.errors import CorpusError, InputError


def read_lines(path: str, language: str) -> list[str]:
    """All lines, including blank ones, of a text file or of standard input (`-`, UTF-8), without line ends.

    Raises CorpusError if a file is empty, binary or cannot be decoded, InputError if there is no text.
    """
    if path == "-":
        where, data, encoding = "Standard input", sys.stdin.buffer.read(), "utf-8-sig"
    else:
        check_file(Path(path))
        where, data, encoding = path, Path(path).read_bytes(), detect_encoding(Path(path), [language])
    lines = decoded(data, encoding, where).replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()  # the newline that ends the last line
    if not lines:
        raise InputError("{where} is empty: there is nothing to translate.", where=where)
    return lines


def lines_of_file(path: Path, encoding: str, where: str) -> list[str]:
    """All lines of a file, including blank ones, without line ends. Raises CorpusError as `decoded` does."""
    lines = decoded(path.read_bytes(), encoding, where).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def decoded(data: bytes, encoding: str, where: str) -> str:
    """The decoded text. Raises CorpusError, naming the line, if it cannot be decoded."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            "{where}, line {line}: these bytes are not {encoding} text. Save it as UTF-8 and try again.",
            where=where, line=line, encoding=encoding.removesuffix("-sig"),
        ) from None  # fmt: skip

"""Requests that can be read in two ways are refused before anything looks at them: else a guard checks one value and the
handler uses another. So are those of so many values that looking at them would hold up everybody.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import QueryParams
from starlette.types import Scope

# Headers of which the studio reads one; a second would be read by one part of it and not by another.
SINGLE = ("host", "origin", "authorization", "cookie", "content-type", "content-length", "sec-fetch-site")
# Parameters that are lists in the interfaces of other services, and that no guard reads.
LISTS = ("text", "q", "ignore_tags", "splitting_tags", "non_splitting_tags", "glossary_ids")
NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
# Each costs some 12 us and 1.5 kB where none is of the right type; the longest list of any request has 10,000.
MOST_VALUES = 30_000
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
MOST_FIELDS = 2_000  # of a form
ESCAPED = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)|\xed[\xa0-\xbf]")  # where JSON may hold what is no character
WRITTEN = re.compile(rb"%[89a-fA-F]")  # a byte beyond ASCII
Refusal = tuple[int, str, str]  # a status, a code for programs, a sentence for people

TWICE = "{name} is given more than once. Give it once."
MANY = f"The request has more than {MOST_VALUES:,} values. Send it in parts."
NOT_UTF_8 = "JSON is sent as UTF-8."
NO_TEXT = "The request holds what is no text: a NUL, half of a surrogate pair, or bytes that are not UTF-8. Send UTF-8."
UNREADABLE: Refusal = (400, "bad_text", NO_TEXT)


class RepeatedKeyError(ValueError):
    """A key occurs twice in a JSON object."""


def refusal(scope: Scope) -> Refusal | None:
    """Why the head of a request cannot be read in one way; None for one that can."""
    names = Counter(name.decode("latin-1").lower() for name, _ in scope["headers"])
    for name in SINGLE:
        if names[name] > 1:
            return 400, "repeated", TWICE.format(name=f"The header {name}")
    address = scope.get("query_string", b"")
    query = QueryParams(address).multi_items()
    if NO_CHARACTER.search(scope["path"]) or not all(map(_is_utf_8, (address, scope.get("raw_path") or b""))):
        return UNREADABLE
    return unreadable(query) or repeated(query, LISTS)


def unreadable(pairs: Iterable[tuple[str, Any]]) -> Refusal | None:
    """Whether a name or a text of a query or a form holds what is no character."""
    broken = any(isinstance(part, str) and NO_CHARACTER.search(part) for pair in pairs for part in pair)
    return UNREADABLE if broken else None


def repeated(pairs: Any, lists: tuple[str, ...] = ()) -> Refusal | None:
    """Which name of a query or a form occurs twice, beside those that are lists; None where none does."""
    counts = Counter(name for name, _ in pairs)
    name = next((name for name, count in counts.items() if count > 1 and name not in lists), None)
    return None if name is None else (400, "repeated", TWICE.format(name=f"The parameter {name[:80]!r}"))


def body_refusal(headers: Mapping[str, str], body: bytes) -> Refusal | None:
    """Why the body of a request with these headers cannot be read in one way; None for one that can, and for one in parts, whose
    files may be anything.
    """
    kind = kind_of(headers)
    if kind == FORMS[1]:
        return None
    return form_refusal(body) if kind == FORMS[0] else json_refusal(body)


def form_refusal(body: bytes) -> Refusal | None:
    """Why the texts of a form are none: decoding would put another character in the place of what is no UTF-8."""
    return None if _is_utf_8(body) else UNREADABLE


def json_refusal(body: bytes) -> Refusal | None:
    """Why a JSON body cannot be read in one way, or has too many values; None for one that can, and for what is no JSON."""
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        return 400, "bad_text", NOT_UTF_8
    if _many(body):
        return 413, "too_many", MANY
    try:
        content = json.loads(body, object_pairs_hook=_once)
    except RepeatedKeyError as error:
        return 400, "repeated", TWICE.format(name=f"The key {str(error)[:80]!r}")
    except (ValueError, RecursionError):
        return None  # the handler says what is wrong with it
    if ESCAPED.search(body) and any(map(NO_CHARACTER.search, _texts(content))):
        return UNREADABLE
    return None


def kind_of(headers: Mapping[str, str]) -> str:
    """The declared type of a body, for example `application/json`; empty if none is declared."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(headers: Mapping[str, str]) -> bool:
    """May the body of this request be read as JSON? Whatever is no form may."""
    return kind_of(headers) not in FORMS


def _is_utf_8(encoded: bytes) -> bool:
    """Whether the bytes, of which some may be written as %41, are UTF-8."""
    if encoded.isascii() and not WRITTEN.search(encoded):
        return True
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return False
    return True


def _many(body: bytes) -> bool:
    """Are there more values than a request may have? Told from the commas outside of strings, before any value is made."""
    if body.count(b",") < MOST_VALUES:
        return False
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * MOST_VALUES:  # of a name and a value
        return True
    return sum(part.count(b",") for part in plain.split(b'"')[::2]) >= MOST_VALUES


def _once(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise RepeatedKeyError(next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1))
    return result


def _texts(content: Any) -> list[str]:
    result, waiting = [], [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            result.append(one)
        elif isinstance(one, dict):
            result += one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return result

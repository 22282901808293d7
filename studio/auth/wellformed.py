"""Refuses ambiguous requests before anything processes them: otherwise a guard might check one value and the handler use
another. Also refuses requests with so many values that parsing them would delay all others.
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

# Headers that must occur at most once; of two, different parts of the studio might read different ones.
SINGLE = ("host", "origin", "authorization", "cookie", "content-type", "content-length", "sec-fetch-site")
# Parameters that are lists in the APIs of other services, and that no guard reads.
LISTS = ("text", "q", "ignore_tags", "splitting_tags", "non_splitting_tags", "glossary_ids")
NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
# Each value of a wrong type costs about 12 us and 1.5 kB; the longest list that any request allows has 10,000.
MOST_VALUES = 30_000
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
MOST_FIELDS = 2_000  # of a form
ESCAPED = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)|\xed[\xa0-\xbf]")  # where JSON may hold an invalid character
WRITTEN = re.compile(rb"%[89a-fA-F]")  # an escaped byte beyond ASCII
Refusal = tuple[int, str, str]  # HTTP status, code for programs, message for people

TWICE = "{name} is given more than once. Give it once."
MANY = f"The request has more than {MOST_VALUES:,} values. Send it in parts."
NOT_UTF_8 = "JSON is sent as UTF-8."
NO_TEXT = "The request holds what is no text: a NUL, half of a surrogate pair, or bytes that are not UTF-8. Send UTF-8."
UNREADABLE: Refusal = (400, "bad_text", NO_TEXT)


class RepeatedKeyError(ValueError):
    """A key occurs twice in a JSON object."""


def refusal(scope: Scope) -> Refusal | None:
    """Why the path, query or headers of a request are ambiguous or invalid; None if they are not."""
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
    """A refusal if a name or text of a query or form contains an invalid character, else None."""
    broken = any(isinstance(part, str) and NO_CHARACTER.search(part) for pair in pairs for part in pair)
    return UNREADABLE if broken else None


def repeated(pairs: Any, lists: tuple[str, ...] = ()) -> Refusal | None:
    """A refusal if a name of a query or form, except those in `lists`, occurs more than once, else None."""
    counts = Counter(name for name, _ in pairs)
    name = next((name for name, count in counts.items() if count > 1 and name not in lists), None)
    return None if name is None else (400, "repeated", TWICE.format(name=f"The parameter {name[:80]!r}"))


def body_refusal(headers: Mapping[str, str], body: bytes) -> Refusal | None:
    """Why the body of a request with these headers is ambiguous or invalid; None if it is not, and for multipart bodies, which
    may contain any files.
    """
    kind = kind_of(headers)
    if kind == FORMS[1]:
        return None
    return form_refusal(body) if kind == FORMS[0] else json_refusal(body)


def form_refusal(body: bytes) -> Refusal | None:
    """A refusal if a form is not valid UTF-8, since decoding would replace invalid bytes, else None."""
    return None if _is_utf_8(body) else UNREADABLE


def json_refusal(body: bytes) -> Refusal | None:
    """Why a JSON body is ambiguous, invalid text or has too many values; None if it is not, and for malformed JSON."""
    if json.detect_encoding(body) not in ("utf-8", "utf-8-sig"):
        return 400, "bad_text", NOT_UTF_8
    if _many(body):
        return 413, "too_many", MANY
    try:
        content = json.loads(body, object_pairs_hook=_once)
    except RepeatedKeyError as error:
        return 400, "repeated", TWICE.format(name=f"The key {str(error)[:80]!r}")
    except (ValueError, RecursionError):
        return None  # the handler reports the error
    if ESCAPED.search(body) and any(map(NO_CHARACTER.search, _texts(content))):
        return UNREADABLE
    return None


def kind_of(headers: Mapping[str, str]) -> str:
    """The declared type of a body, for example `application/json`; empty if none is declared."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body of a request may be parsed as JSON, that is, whether it is not declared as a form."""
    return kind_of(headers) not in FORMS


def _is_utf_8(encoded: bytes) -> bool:
    """Whether the bytes, in which escapes such as %41 are allowed, are UTF-8."""
    if encoded.isascii() and not WRITTEN.search(encoded):
        return True
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return False
    return True


def _many(body: bytes) -> bool:
    """Whether a JSON body has too many values, estimated from the commas outside strings before parsing."""
    if body.count(b",") < MOST_VALUES:
        return False
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * MOST_VALUES:  # two quotes each for a name and its value
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
        item = waiting.pop()
        if isinstance(item, str):
            result.append(item)
        elif isinstance(item, dict):
            result += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return result

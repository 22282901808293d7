"""From a good input to a bad one: bytes, text, JSON and zip archives changed where it hurts, the same for the same seed."""

# ruff: noqa: E501 - inputs are as long as they are

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

__all__ = ["mutate"]

MOST = 1 << 17  # bytes of text, twice as many of an archive; a larger input costs time and finds no more
CODECS = ("utf-16", "utf-16-be", "utf-8-sig", "gb18030", "latin-1", "utf-32", "shift_jis", "big5", "utf-7", "koi8-r")
TOKENS: tuple[bytes, ...] = (
    b"", b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b'"', b"'", b"<", b">", b"&", b"&lt;", b"&#0;", b"&#x110000;", b"]]>", b"<![CDATA[",
    b"<!--", b"-->", b"--", b"{", b"}", b"[", b"]", b"\\", b"\\u0000", b"\\ud800", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\x1a", b"\x85", "\u2028".encode(), "\u202e".encode(), "\U0001f469\u200d\U0001f467".encode(), "e\u0301".encode(),
    "。".encode(), "他什么也不曾说。".encode(), b"-1", b"0", b"1e309", b"9" * 40, b"NaN", b"Infinity", b"null", b"true", b"../../x",
    b"/etc/passwd", b"CANARY", b"%s%n", b"${x}", b"{{x}}", b"{0}", b"https://example.invalid/", b"xml:lang", b"xml:space", b"<ph/>",
    b"<seg>", b"</seg>", b"<tu>", b"</tu>", b"<mrk>", b"<x id='1'/>", b"<g id='", b"<pc id='1'>", b"msgid", b"msgstr[99] \"x\"",
    b"#, fuzzy", b"#~ ", b"00:00:01,000 --> 00:00:00,500", b"-->", b"99:99:99,999", b"WEBVTT", b"obj", b"endobj", b"stream", b"endstream",
    b"xref", b"/Kids", b"/Parent 1 0 R", b"/Length -1", b"/Filter /FlateDecode", b"<w:p>", b"</w:r>", b"<text:p>", b"<office:text>",
    b'<!DOCTYPE a [<!ENTITY x SYSTEM "file://CANARY">]>', b'<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>', b"&x;",
    b'<?xml version="1.0" encoding="utf-16"?>', b'<?xml version="1.1" encoding="x-none"?>', b"```", b"<script>", b"<pre>", b"~~~", b"|---|",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", " ", "\0", "x" * 5000,
    "\ud800", "../../x", "/etc/passwd", "CANARY", "en", "zh", "auto", "he\u202ello", "9" * 5000, [], {}, [[]], [None], {"": ""}, [{}] * 3,
    {"a": {"b": [1]}}, [1, "x", None],
)  # fmt: skip


def mutate(data: bytes, rng: random.Random, kind: str = "text", others: Sequence[bytes] = ()) -> bytes:
    """A changed copy, at most MOST bytes. `kind`: text, json, zip, bundle (a zip with a manifest); `others` to splice with."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if kind in ("zip", "bundle") and rng.random() < 0.85:
            data = _archive(data, rng, kind == "bundle", others)
        elif kind == "json" and rng.random() < 0.85:
            data = _json(data, rng)
        else:
            data = _text(data, rng, others)
    return data[: MOST if kind in ("text", "json") else 2 * MOST]


def _text(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    size = len(data)
    a = rng.randrange(size + 1)
    b = min(size, a + rng.choice((0, 1, 2, 4, 8, 16, 64, 256, 4096)))
    way = rng.randrange(13)
    if way == 0 and size:  # a bit
        a = min(a, size - 1)
        return data[:a] + bytes([data[a] ^ (1 << rng.randrange(8))]) + data[a + 1 :]
    if way == 1:
        return data[:a] + data[b:]
    if way in (2, 3):
        return data[:a] + rng.choice(TOKENS) + data[b if way == 2 else a :]
    if way == 4:
        return data[:b] + data[a:b] * rng.choice((1, 2, 7, 100)) + data[b:]
    if way == 5:
        return data[:a]
    if way == 6:
        return data[:a] + rng.randbytes(rng.choice((1, 2, 4, 16, 256))) + data[b:]
    if way == 7 and others:
        other = rng.choice(others)
        c = rng.randrange(len(other) + 1)
        return data[:a] + other[c : c + rng.choice((4, 64, 1024, MOST))] + data[b:]
    if way == 8:  # two lines change places
        lines = data.split(b"\n")
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return b"\n".join(lines)
    if way == 9:  # another encoding than it says
        return data.decode("utf-8", "replace").encode(rng.choice(CODECS), "replace")
    if way == 10:  # the same element over and over, inside itself
        piece = rng.choice((b"<a>", b"[", b'{"a":', b"<<", b"> ", b"(", b"<w:p>", b"<div>", b"- ", b"*", b"`", b"<g id='1'>"))
        return data[:a] + piece * rng.choice((10, 300, 5000)) + data[a:]
    if way == 11:  # a number becomes another
        digits = [i for i, byte in enumerate(data[a : a + 400], a) if 48 <= byte <= 57]
        if digits:
            i = rng.choice(digits)
            return data[:i] + rng.choice((b"0", b"-1", b"4294967296", b"9" * 30, b"1e999", b"\xd9\xa3")) + data[i + 1 :]
    return data[:a] + data[b:] + data[a:b]


def _json(data: bytes, rng: random.Random) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _text(data, rng, ())
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            for key in node if isinstance(node, dict) else range(len(node)):
                places.append((node, key))
                stack.append(node[key])
    if not places:
        return json.dumps(rng.choice(ODD)).encode()
    holder, key = rng.choice(places)
    way = rng.randrange(6)
    if way <= 2:
        holder[key] = rng.choice(ODD)
    elif way == 3:
        del holder[key]
    elif way == 4:
        other, name = rng.choice(places)
        try:
            holder[key] = json.loads(json.dumps(other[name]))
        except (KeyError, IndexError, RecursionError):
            holder[key] = None
    elif isinstance(holder, dict):
        holder[rng.choice((f"{key}x", "", "__class__", "path", "name"))] = holder[key]
    else:
        holder.insert(rng.randrange(len(holder) + 1), rng.choice(ODD))
    try:
        return json.dumps(value, ensure_ascii=rng.random() < 0.7).encode("utf-8", "surrogatepass")
    except RecursionError:
        return data


def _archive(data: bytes, rng: random.Random, manifest: bool, others: Sequence[bytes]) -> bytes:
    files = _members(data)
    if not files:
        return _text(data, rng, others)
    name = rng.choice(list(files))
    way = rng.randrange(12)
    if way <= 6:
        change = _safetensors if name.endswith(".safetensors") and rng.random() < 0.6 else None
        change = _json_or_text if change is None else change
        files[name] = change(files[name], rng, name)
    elif way == 7:
        del files[name]
    elif way == 8:
        odd = (
            "../x",
            "/x",
            "C:\\x",
            "a/../../x",
            "word/document.xml",
            "",
            "x" * 300,
            "\u202e.xml",
            "content.xml",
            "styles.xml",
            f"{name}/",
        )
        files[rng.choice(odd)] = files[name]
    elif way == 9 and others:
        more = _members(rng.choice(others))
        if more:
            other = rng.choice(list(more))
            files[rng.choice((name, other))] = more[other]
    elif way == 10:
        files[name] = (
            files[name] * rng.choice((0, 2, 50)) if len(files[name]) < 4000 else b"\0" * rng.choice((1, 100_000, 3_000_000))
        )
    if manifest and rng.random() < 0.8:
        entries = {
            member: {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
            for member, body in files.items()
            if member != "manifest.json"
        }
        files["manifest.json"] = json.dumps({"files": entries}).encode()
    out = io.BytesIO()
    packing = rng.choices((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA), (30, 66, 2, 2))[0]
    try:
        with zipfile.ZipFile(out, "w", packing, compresslevel=1) as archive:
            for member, body in files.items():
                archive.writestr(member, body)
    except (ValueError, IndexError, struct.error):
        return data
    packed = out.getvalue()
    return _text(packed, rng, ()) if rng.random() < 0.15 else packed


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > 64 * MOST:
                return {}
            return {member.filename: archive.read(member) for member in archive.infolist()}
    except Exception:  # whatever a broken archive makes zipfile raise
        return {}


def _json_or_text(data: bytes, rng: random.Random, name: str) -> bytes:
    if name.endswith((".json", ".jsonl")) and rng.random() < 0.7:
        lines = data.split(b"\n") if name.endswith(".jsonl") else [data]
        i = rng.randrange(len(lines))
        lines[i] = _json(lines[i], rng)
        return b"\n".join(lines)
    return _text(data, rng, ())


def _safetensors(data: bytes, rng: random.Random, name: str) -> bytes:
    """Its header is JSON, after eight bytes with the header's length."""
    if len(data) < 8:
        return data
    (size,) = struct.unpack("<Q", data[:8])
    head = _json(data[8 : 8 + min(size, len(data))], rng)
    length = len(head) if rng.random() < 0.8 else rng.choice((0, 7, 2**31, 2**63, len(head) + 1))
    return struct.pack("<Q", length) + head + data[8 + min(size, len(data)) :]

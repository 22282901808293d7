"""Resumable back-translation of many texts: finished parts are stored in a file beside the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.base.decoding_options import Decoding
from engine.base.model import BaseModel
from engine.base.remote import base_arguments
from engine.core.progress import Part, Progress
from engine.core.remote_map import map_remotely
from engine.decoding.greedy_search import back_translate
from engine.decoding.remote import BACK_TRANSLATE
from engine.decoding.translate import in_order
from engine.errors import storage_errors

PART = 512  # texts between two writes


def back_translate_all(
    base: BaseModel, texts: Sequence[str], partial: Path | None, progress: Progress, decoding: Decoding | None = None, *,
    keep: bool = False,
) -> list[str]:  # fmt: skip
    """Translate all texts; with `partial`, each finished part is appended to that file and not repeated after a stop.

    `decoding` selects a beam search with these settings instead of greedy decoding. Parts may be processed by other machines
    (engine.core.remote_map). The file belongs to these texts and this base (it starts with their hash). It is removed at the
    end, so callers write their result next; `keep` leaves the file for callers with more to do first. Texts of a part have
    similar lengths.
    """
    order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
    key = hashlib.sha256(json.dumps([base.fingerprint(), base.source, base.target, *texts]).encode()).hexdigest()
    finished = read_partial(partial, key)
    results: list[str] = finished[: len(texts)]
    begin = len(results)
    parts = [[texts[i] for i in order[position : position + PART]] for position in range(begin, len(texts), PART)]
    for done in _translated(base, parts, begin, len(texts), progress, decoding):
        begin = len(results)
        results += done
        if partial is not None:
            with storage_errors("the translations", partial), partial.open("a", encoding="utf-8") as file:
                if not finished and begin == 0:
                    file.truncate(0)
                    file.write(json.dumps(key) + "\n")
                file.write(json.dumps(done, ensure_ascii=False) + "\n")
    if partial is not None and not keep:
        partial.unlink(missing_ok=True)
    return in_order([(order, results)])


def _translated(
    base: BaseModel, parts: Sequence[list[str]], begin: int, total: int, progress: Progress, decoding: Decoding | None
) -> Iterator[list[str]]:
    """The translations of each part; `begin` of the `total` texts were finished before."""
    from engine.decoding.translate import translate

    search = None if decoding is None else decoding.to_mapping()
    elsewhere = map_remotely(BACK_TRANSLATE, lambda: base_arguments(base) | {"decoding": search}, parts, progress)
    if elsewhere is not None:
        for part, done in zip(parts, elsewhere, strict=True):
            begin += len(part)
            progress.advance(begin, total)
            yield done
        return
    for part in parts:
        shifted = Part(progress, begin, total)
        if decoding is None:
            yield back_translate(base, part, progress=shifted)
        else:
            yield translate(base, part, decoding=decoding, progress=shifted)
        begin += len(part)


def read_partial(partial: Path | None, key: str) -> list[str]:
    """The results of an earlier run; empty if the file has another key or is cut off in its first part."""
    if partial is None or not partial.exists():
        return []
    results: list[str] = []
    try:
        with partial.open(encoding="utf-8") as file:
            if json.loads(file.readline()) != key:
                return []
            for line in file:
                results += json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        # A line cut by a crash would be followed by the next part: restart instead of mixing them.
        return []
    return results

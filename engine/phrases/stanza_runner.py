"""Running a stanza pipeline over many sentences: in batches, cancellable and robust against failing sentences."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from engine.core.cores import one_thread
from engine.core.progress import Progress
from engine.errors import ModelError
from engine.phrases.parsed_sentence import Parsed, read_stanza
from engine.phrases.token_spans import parts

BATCH_SECONDS = 0.8  # seconds per batch, so that cancelling and the progress bar respond promptly
FIRST_BATCH, LARGEST_BATCH = 16, 2048
HOPELESS = 20  # consecutive failures, without any success, after which parsing is given up
# Characters that stanza takes for a space; each is replaced by one space, so that offsets are unchanged.
BLANK = re.compile(r"[\s\u0080-\u009f]")


def parse_sentences(
    pipeline: Any, sentences: Sequence[str], progress: Progress | None = None
) -> Iterator[tuple[int, list[Parsed]]]:
    """Each sentence's index with its parses, in order; offsets count from the sentence's first character.

    A very long sentence is parsed in several parts; a sentence that stanza cannot parse has none. Raises ModelError if the
    parser fails on everything, Cancelled if the user wants to stop.
    """
    progress = progress or Progress()
    runner = _Runner(pipeline)
    size, position = FIRST_BATCH, 0
    while position < len(sentences):
        progress.advance(position, len(sentences), "parsing")
        started = time.monotonic()
        batch = sentences[position : position + size]
        stretches = [(index, *edges) for index, text in enumerate(batch) for edges in parts(text)]
        results: list[list[Parsed]] = [[] for _ in batch]
        parsed = runner.run([BLANK.sub(" ", batch[index][start:end]) for index, start, end in stretches])
        for (index, start, _), document in zip(stretches, parsed, strict=True):
            for sentence in document.sentences if document is not None else ():
                reading = read_stanza(sentence, batch[index], start) if sentence.tokens else None
                if reading is not None:
                    results[index].append(reading)
        for index, readings in enumerate(results):
            yield position + index, readings
        position += len(batch)
        seconds_per_sentence = (time.monotonic() - started) / len(batch)
        size = max(1, min(LARGEST_BATCH, 2 * size, int(BATCH_SECONDS / max(seconds_per_sentence, 1e-6))))
    progress.advance(len(sentences), len(sentences), "parsing")


class _Runner:
    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.parsed = self.failed = 0

    def run(self, texts: list[str]) -> list[Any]:
        """A stanza Document for each text, None for those on which it fails."""
        from stanza.models.common.doc import Document

        spoken = [index for index, text in enumerate(texts) if text.strip()]
        results: list[Any] = [None] * len(texts)
        if not spoken:
            return results
        try:
            with one_thread():
                documents = self.pipeline.bulk_process([Document([], text=texts[index]) for index in spoken])
        except Exception as error:  # any error of a model; the failing sentence is found by halving
            if len(spoken) > 1:
                middle = spoken[len(spoken) // 2]
                return self.run(texts[:middle]) + self.run(texts[middle:])
            self.failed += 1
            if self.failed >= HOPELESS and not self.parsed:
                raise ModelError(
                    "The parser fails on every sentence ({error}): put a fresh copy of its models there.", error=error
                ) from error
            return results
        self.parsed += len(spoken)
        for index, document in zip(spoken, documents, strict=True):
            results[index] = document
        return results

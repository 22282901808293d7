"""The joint SentencePiece vocabulary of both languages, in the files that transformers' MarianTokenizer reads."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from engine.core.atomic_files import atomic_write, write_json
from engine.errors import CorpusError, ModelError

EOS, UNKNOWN = 0, 1
# Marks that must have their own piece even if they are rare in the training text, since users' texts contain them.
MARKS = "，。！？；：、“”‘’《》（）【】〈〉「」『』—…·～％„“”«»‹›–€£°§"
# Begins a source sentence that is machine translation (tagged back-translation, Caswell et al. 2019). With a vocabulary without
# this mark (release 0.1), the piece of the NUL byte, which no text contains, is used instead.
SYNTHETIC = "<bt>"
NO_TEXT = "<0x00>"


@dataclass(frozen=True)
class Vocabulary:
    """The pieces and tags with their numbers."""

    processor: Any  # sentencepiece.SentencePieceProcessor
    size: int
    pad: int
    tags: dict[str, int]  # language: the number of its tag
    source: str
    target: str
    synthetic: int | None = None  # the number of the mark of machine-translated sources; None: no piece for it

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Numbers of the pieces of each text, without tag and end."""
        return self.processor.encode(texts)


def train_vocabulary(
    texts: Callable[[], Iterable[str]], size: int, source: str, target: str, folder: Path, threads: int = 2, grow: bool = False
) -> Vocabulary:
    """Train a vocabulary and write source.spm, target.spm, vocab.json and tokenizer_config.json into `folder`.

    Identity normalisation and byte fallback preserve full-width punctuation and every character. With `grow`, a size too
    small for the text's characters (Chinese has thousands) is raised to twice their number. Raises CorpusError if the text is
    too small for `size` pieces, or has too many characters for them.
    """
    try:
        model = _learnt(texts(), size, threads)
    except (RuntimeError, OSError) as error:  # SentencePiece's own message refers to its C++ source
        full = re.search(r"required_chars\D{0,200}+(\d++) vs (\d++)", str(error))
        if not grow or not full:
            raise CorpusError(_why_not(size, str(error))) from error
        size = -(-2 * max(int(full[1]), int(full[2])) // 1000) * 1000
        return train_vocabulary(texts, size, source, target, folder, threads)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm"):
        with atomic_write(folder / name, "the vocabulary") as temporary:
            temporary.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    numbers = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    for piece in (f">>{source}<<", f">>{target}<<", "<pad>", SYNTHETIC):
        numbers[piece] = len(numbers)
    with atomic_write(folder / "vocab.json", "the vocabulary") as temporary:
        temporary.write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "MarianTokenizer", "source_lang": source, "target_lang": target, "separate_vocabs": False,
         "model_max_length": 512},
        "the vocabulary",
    )  # fmt: skip
    return load_vocabulary(folder, source, target)


def _learnt(texts: Iterable[str], size: int, threads: int) -> io.BytesIO:
    """A serialised SentencePiece model trained on the texts."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        model_type="unigram",
        character_coverage=0.9999,
        byte_fallback=True,
        normalization_rule_name="identity",
        required_chars=MARKS,
        eos_id=EOS,
        unk_id=UNKNOWN,
        bos_id=-1,
        pad_id=-1,
        max_sentence_length=8192,
        num_threads=threads,
        minloglevel=2,
    )
    return model


def _why_not(size: int, reason: str) -> str:
    limit = re.search(r"value <= (\d+)", reason)
    if limit:
        return f"The text yields {int(limit[1]):,} pieces at most, not {size:,}. Give more pairs, or a --vocabulary up to that."
    if "required_chars" in reason:
        return f"A vocabulary of {size:,} pieces is too small for the text's characters. Give a larger --vocabulary."
    return f"No vocabulary of {size:,} pieces could be learnt from the text. Give more pairs, or another --vocabulary."


def load_vocabulary(folder: Path, source: str, target: str) -> Vocabulary:
    """Load the vocabulary in a model's folder. Raises ModelError if it is missing, not joint, or of other languages."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=(folder / "source.spm").read_bytes())
        numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        same = (folder / "target.spm").read_bytes() == (folder / "source.spm").read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{folder} holds no vocabulary of a Marian model ({error}). Give another folder.") from None
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    if not same or any(numbers.get(piece) != i for i, piece in enumerate(pieces)) or "<pad>" not in numbers:
        raise ModelError(f"The vocabulary in {folder} is not one joint vocabulary of both languages, so it cannot be trained on.")
    missing = [code for code in (source, target) if f">>{code}<<" not in numbers]
    if missing:
        raise ModelError(
            f"The base in {folder} has no tag >>{missing[0]}<<, so it cannot learn {missing[0]}. Train without --init."
        )
    tags = {code: numbers[f">>{code}<<"] for code in (source, target)}
    mark = numbers.get(SYNTHETIC, numbers.get(NO_TEXT))
    return Vocabulary(processor, len(numbers), numbers["<pad>"], tags, source, target, mark)


def copy_vocabulary(start: Path, folder: Path) -> None:
    """Copy the vocabulary of the model whose weights the training starts from."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
        with atomic_write(folder / name, "the vocabulary") as temporary:
            shutil.copyfile(start / name, temporary)

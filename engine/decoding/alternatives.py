"""Alternative translations of a sentence: its n-best list, optionally after a given beginning, and possible next words."""

from __future__ import annotations

from dataclasses import dataclass

from engine.base.adapter import Adapter, active_adapter
from engine.base.decoding_options import Decoding
from engine.base.model import BaseModel
from engine.core.languages import unspaced
from engine.decoding.candidates import Candidate, candidates
from engine.decoding.enforce_terms import Beginning
from engine.decoding.translate import Search, attached
from engine.errors import InputError

MAX_HYPOTHESES = 10  # of one sentence


@dataclass(frozen=True)
class Alternatives:
    """`sentences` are whole translations that start with the prefix, best first; `words` may follow the prefix, likeliest first."""

    sentences: list[str]
    words: list[Candidate]


def alternatives(
    base: BaseModel,
    text: str,
    plugin: Adapter | None = None,
    *,
    strength: float = 1.0,
    decoding: Decoding | None = None,
    prefix: str = "",
    count: int = 5,
) -> Alternatives:
    """Up to `count` different translations that begin with `prefix` (whole target words), and as many possible next words.

    Raises InputError if sentence or prefix is longer than the base's maximum length, OptionError if the plugin gives no
    probabilities.
    """
    plugin = active_adapter(base, text, plugin, strength)
    if plugin is not None:
        plugin.check_likelihood()
    count = max(1, min(MAX_HYPOTHESES, count))
    decoding = decoding or base.decoding()
    text, prefix = (" ".join(value.split()) for value in (text, prefix))
    if not text:
        return Alternatives([], [])
    with base.lock:
        row, labels = base.encode([text])[0], base.encode_target([prefix])[0]
    if max(len(row), len(labels) + 1) > base.max_tokens:
        raise InputError("This sentence is longer than the base's maximum length, so it has no alternatives. Split it.")
    with attached(base, plugin, strength):
        search = Search(base, plugin, strength, [row], [0])
        beginning = None
        if prefix:  # it ends a word, so tokens that would continue this word are barred
            no_spaces = unspaced(base.target)
            barred = [] if no_spaces else [i for i, piece in enumerate(search.pieces) if piece[:1].isalnum()]
            beginning = Beginning(labels, barred)
        sentences = base.decode(search.generate([0], decoding.replace(beam=max(decoding.beam, count)), beginning, count))
    words = candidates(base, text, labels[:-1], plugin, strength=strength, count=count)
    return Alternatives(list(dict.fromkeys(sentence for sentence in sentences if sentence)), [word for word in words if word.text])

"""Domain proportions without a trained plugin: fitted on a frozen base after an upload, and computed for any sentence.

L_mix trains only R, on the states of the frozen base, so proportions are available before any training. In the paper all
sentences have sources; two questions arise here in addition.

Sources.  If all sentences have sources (the user's, or back-translations), the encoder reads them, and the decoder reads the
    sentences by teacher forcing. Otherwise no sources are generated, as this would take minutes: the decoder reads the sentences
    over an empty source, like a language model. The encoder reads the sentences if the base also translates in the reverse
    direction.
Amount.   Some thousand subwords per domain suffice to fit k numbers per layer; whole sentences are drawn at random up to that.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.core.languages import unspaced
from engine.core.progress import Progress
from engine.errors import CorpusError, InputError, ModelError
from engine.methods.domain_mixing.config import DomainMixingConfig
from engine.methods.domain_mixing.model import ProportionModel
from engine.methods.domain_mixing.report import layer_names, rounded, shared, summary
from engine.methods.domain_mixing.shapes import CorpusSummary, HeldOut, SentenceProportions
from engine.methods.domain_mixing.words import words_of

if TYPE_CHECKING:
    import torch

    from engine.base import BaseModel
    from engine.base.adapter import Adapter
    from engine.methods.domain_mixing.states import TokenStates

LEAST = 8  # minimum sentences per domain
HELD_OUT = 10  # one sentence in this many is held out
LARGEST = 400 << 20  # maximum bytes of states in memory
LONGEST = 256  # maximum tokens of a sentence

Sentence = Any  # a text, a (source, target) tuple, or an object with `source` and `text` or `target`


def source_and_target(sentence: Sentence) -> tuple[str | None, str]:
    """(source, target) of a text, a Segment, a SentencePair or a pair."""
    if isinstance(sentence, str):
        return None, sentence
    if isinstance(sentence, tuple):
        return sentence[0], sentence[1]
    return sentence.source, sentence.text if hasattr(sentence, "text") else sentence.target


def fit_proportions(
    base: BaseModel, sentences: Mapping[str, Sequence[Sentence]], config: DomainMixingConfig | None = None, *,
    seed: int = 1, index: bool = False, progress: Progress | None = None,
) -> ProportionModel:  # fmt: skip
    """Fit R of every layer by L_mix on the frozen base's states for the sentences of two or more domains.

    Uses epsilon, ridge, balance and words of `config`. In the result, `held_out` shows how well words of held-out sentences are
    assigned to their domain, and `corpus` summarises all words, with an index of them if `index`. Raises CorpusError if a domain
    has fewer than 8 sentences or there is only one domain.
    """
    import torch

    from engine.core.cores import one_thread
    from engine.methods.domain_mixing.fit import best_ridge, domain_weights, fit_layer
    from engine.methods.domain_mixing.input_hooks import proportion_layer_counts
    from engine.methods.domain_mixing.states import collect

    progress, config = progress or Progress(), config or DomainMixingConfig()
    epsilon, ridge, balance = config.epsilon, config.ridge, config.balance
    names = list(sentences)
    check_domains(sentences)
    has_sources = all(source_and_target(sentence)[0] for group in sentences.values() for sentence in group)
    side_base = None if has_sources else reversed_base(base)
    with base.lock, torch.inference_mode(False):
        budget = min(config.words, LARGEST // (2 * base.d_model * sum(proportion_layer_counts(base).values()) * len(names)))
        samples = [draw(base, list(sentences[name]), budget, random.Random(f"{seed}/{name}")) for name in names]
        chosen = [sentence for group, _ in samples for sentence in group]
        owner = torch.tensor([j for j, (group, _) in enumerate(samples) for _ in group])  # (sentences,)
        targets = [source_and_target(sentence)[1] for sentence in chosen]
        sources = encode_truncated(base, [source_and_target(sentence)[0] or "" for sentence in chosen]) if has_sources else None
        result = collect(base, sources, base.encode_target(targets), progress=progress)
        if side_base is not None:
            result |= collect(side_base, encode_truncated(side_base, targets), None, progress=progress)
    weights = domain_weights([total for _, total in samples], balance)
    model = ProportionModel(
        names, epsilon, {}, weights, ridge or 0.0, "source" if has_sources else "target" if side_base else "", has_sources,
        base.fingerprint(),
    )  # fmt: skip
    is_held_out = held_out(owner, seed)
    steps, done = sum(len(tokens.states) for tokens in result.values()), 0
    for side, tokens in sorted(result.items()):
        domain = owner.to(tokens.sentence.device)[tokens.sentence]  # (n,)
        out = is_held_out.to(tokens.sentence.device)[tokens.sentence]  # (n,)
        scale = domain_weights(torch.bincount(domain[~out], minlength=len(names)).tolist(), balance)
        with one_thread():
            if ridge is None and side == "decoder":  # fitted first; the ridge is used for both sides
                middle = tokens.states[len(tokens.states) // 2]
                model.ridge = best_ridge(
                    (middle[~out], domain[~out]), (middle[out], domain[out]), len(names), epsilon=epsilon, weights=scale
                )
            layers = []
            for states in tokens.states:
                progress.advance(done, steps, "fitting")
                layers.append(
                    fit_layer(
                        states[~out], domain[~out], len(names), epsilon=epsilon, ridge=model.ridge, weights=scale
                    ).requires_grad_(False)
                )
                done += 1
        model.layers[side] = layers
        shares = model.proportions(side, tokens.states)  # (n, P, k)
        model.held_out[side] = held_out_shares(shares[out], domain[out], tokens.sentence[out], side)
        model.corpus[side] = corpus_summary(base, model, side, tokens, shares, domain, index)
    progress.advance(steps, steps)
    return model


def corpus_proportions(
    base: BaseModel, model: ProportionModel, pairs: Mapping[str, Sequence[Sentence]], *,
    plugin: Adapter | None = None, progress: Progress | None = None,
) -> dict[str, CorpusSummary]:  # fmt: skip
    """The `corpus` of `fit_proportions`, with an index of the words, for existing proportions, such as those of a trained plugin,
    which is attached meanwhile. All sentences must have sources; sentences of unknown domains are skipped.
    """
    import torch

    from engine.methods.domain_mixing.states import collect

    rows = [(j, *source_and_target(pair)) for j, name in enumerate(model.domains) for pair in pairs.get(name, ())]
    result: dict[str, CorpusSummary] = {}
    if rows:
        with base.using(plugin):
            sources = encode_truncated(base, [source or "" for _, source, _ in rows])
            labels = [row[: base.max_tokens] for row in base.encode_target([target for _, _, target in rows])]
            tokens_of = collect(base, sources, labels, progress=progress)
        for side, tokens in sorted(tokens_of.items()):
            owner = torch.tensor([j for j, _, _ in rows], device=tokens.sentence.device)  # (sentences,)
            shares = model.proportions(side, tokens.states)  # (n, P, k)
            result[side] = corpus_summary(base, model, side, tokens, shares, owner[tokens.sentence], True)
    return result


def check_domains(sentences: Mapping[str, Sequence[Sentence]]) -> None:
    """Raises CorpusError if there are fewer than two domains, or a domain has too few sentences."""
    if len(sentences) < 2:
        raise CorpusError("Proportions need two domains or more. Provide a file for each domain, or a general one as another.")
    for name, group in sentences.items():
        if len(group) < LEAST:
            raise CorpusError(
                "The domain {name} has {count} sentences; at least {least} are needed. Add more.",
                name=name, count=len(group), least=LEAST,
            )  # fmt: skip


def reversed_base(base: BaseModel) -> BaseModel | None:
    """The base for the reverse direction, whose encoder reads the target language; None if the base does not support it."""
    try:
        return base.for_direction(base.target, base.source)
    except ModelError:
        return None


def encode_truncated(base: BaseModel, texts: Sequence[str]) -> list[list[int]]:
    """Source tokens, truncated to the maximum that the base can read."""
    return [row[: base.max_tokens] for row in base.encode(texts)]


def draw(base: BaseModel, sentences: list[Sentence], words: int, random_: random.Random) -> tuple[list[Sentence], float]:
    """Randomly drawn sentences with about `words` subwords in total, and an estimate of the subwords in the whole domain."""
    random_.shuffle(sentences)
    chosen: list[Sentence] = []
    pieces = 0
    for begin in range(0, len(sentences), 256):
        batch = sentences[begin : begin + 256]
        for sentence, ids in zip(batch, base.encode_target([source_and_target(sentence)[1] for sentence in batch]), strict=True):
            if 1 < len(ids) <= min(LONGEST, base.max_tokens) and (pieces < words or len(chosen) < LEAST):
                chosen.append(sentence)
                pieces += len(ids)
        if pieces >= words:
            break
    return chosen, pieces * len(sentences) / max(1, len(chosen))


def held_out(owner: torch.Tensor, seed: int) -> torch.Tensor:
    """Mask of the held-out sentences: one in ten of each domain, at least one; `owner` (sentences,) are their domains."""
    import torch

    draw_ = torch.Generator().manual_seed(seed)
    mask = torch.zeros(len(owner), dtype=torch.bool)
    for j in owner.unique():
        rows = (owner == j).nonzero()[:, 0]
        mask[rows[torch.randperm(len(rows), generator=draw_)[: max(1, len(rows) // HELD_OUT)]]] = True
    return mask  # (sentences,)


def held_out_shares(shares: torch.Tensor, domain: torch.Tensor, sentence: torch.Tensor, side: str) -> HeldOut:
    """Figures of held-out words and sentences; `shares` is (n, P, k), the other tensors (n,).

    For words, by layer: the mean proportion of their domain and the share of words for which it is the largest, averaged over
    domains. For sentences: the share for which it is the largest on average over words and layers.
    """
    import torch

    proportions, right = [], []
    for j in domain.unique():
        domain_shares = shares[domain == j]  # (m, P, k)
        proportions.append(domain_shares[..., j].mean(0))  # (P,)
        right.append((domain_shares.argmax(-1) == j).float().mean(0))  # (P,)
    mean, leaning = torch.stack(proportions).mean(0), torch.stack(right).mean(0)  # (P,), (P,)
    correct = [shares[sentence == i].mean((0, 1)).argmax() == domain[sentence == i][0] for i in sentence.unique()]
    return {
        "layers": layer_names(side, shares.shape[1]),
        "words": len(shares),
        "own_proportion": rounded(mean.cpu()),
        "words_leaning_right": rounded(leaning.cpu()),
        "sentences": len(correct),
        "sentences_leaning_right": round(float(sum(map(int, correct))) / max(1, len(correct)), 4),
    }


def language_of(base: BaseModel, model: ProportionModel, side: str) -> str:
    """The language that a side reads."""
    return base.source if side == "encoder" and model.encoder_reads == "source" else base.target


def corpus_summary(
    base: BaseModel, model: ProportionModel, side: str, tokens: TokenStates, shares: torch.Tensor, domain: torch.Tensor, index: bool
) -> CorpusSummary:
    """The `summary` of words, with proportions averaged over the subwords of each word."""
    rows, owners, texts = [], [], []
    values, where = shares.cpu().numpy(), tokens.sentence.cpu().numpy()
    named = domain.cpu().numpy()
    pieces = base.tokenizer.convert_ids_to_tokens(tokens.ids.tolist())
    bounds = [*np.flatnonzero(np.diff(where, prepend=-1)), len(where)]
    spaceless = unspaced(language_of(base, model, side))
    for begin, end in itertools.pairwise(bounds):
        for text, indices in words_of(pieces[begin:end], unspaced=spaceless):
            rows.append(values[[begin + i for i in indices]].mean(0))
            owners.append(named[begin])
            texts.append(text)
    return summary(side, model.domains, np.stack(rows), np.array(owners), texts, index)


def proportions(
    base: BaseModel, model: ProportionModel, sentence: str, side: str = "decoder", *, source: str = "",
    plugin: Adapter | None = None,
) -> SentenceProportions:  # fmt: skip
    """The proportions of one sentence; see `proportions_of`."""
    return proportions_of(base, model, [sentence], side, sources=[source] if source else None, plugin=plugin)[0]


def proportions_of(
    base: BaseModel, model: ProportionModel, sentences: Sequence[str], side: str = "decoder", *,
    sources: Sequence[str] | None = None, plugin: Adapter | None = None, progress: Progress | None = None,
) -> list[SentenceProportions]:  # fmt: skip
    """The domain proportions of every word of the sentences as plain data: averaged over layers, and per layer.

    For the side "decoder", sentences are in the target language, read over `sources` or an empty source. For the side "encoder",
    they are in the language that the model's encoder reads (`encoder_reads`). `plugin` is attached meanwhile, for the proportions
    of a trained plugin (`MixingModule.proportion_model`). Sentences too long for the base are truncated. Raises InputError if the
    model lacks the side, or the numbers of sentences and sources differ.
    """
    from engine.methods.domain_mixing.states import collect

    if side not in model.layers:
        raise InputError(
            "These proportions have no side {side}. Available: {layers}; those of the encoder need sentences "
            "with sources, or a base that translates both ways.",
            side=side,
            layers=", ".join(model.layers),
        )
    if sources is not None and len(sources) != len(sentences):
        raise InputError(
            "There are {sentences} sentences but {sources} sources. Provide one for each.",
            sentences=len(sentences),
            sources=len(sources),
        )
    clean = [" ".join(text.split()) for text in sentences]
    selected = [i for i, text in enumerate(clean) if text]
    results = [described(model, side, text, [], []) for text in clean]
    if not selected:
        return results
    read_by = base.for_direction(base.target, base.source) if side == "encoder" and model.encoder_reads == "target" else base
    with base.using(plugin):
        texts = [clean[i] for i in selected]
        inputs: list[list[int]] | None = None
        labels: list[list[int]] | None = None
        if side == "encoder":
            inputs = encode_truncated(read_by, texts)
        else:
            labels = [row[: base.max_tokens] for row in base.encode_target(texts)]
            if sources is not None:
                inputs = encode_truncated(base, [" ".join(sources[i].split()) for i in selected])
        tokens = collect(read_by, inputs, labels, half=False, progress=progress)[side]
        shares = model.proportions(side, tokens.states).cpu().numpy()  # (n, P, k)
    pieces = base.tokenizer.convert_ids_to_tokens(tokens.ids.tolist())
    where = tokens.sentence.tolist()
    spaceless = unspaced(language_of(base, model, side))
    for row, i in enumerate(selected):
        indices = [index for index, owner in enumerate(where) if owner == row]
        words = words_of([pieces[index] for index in indices], unspaced=spaceless)
        values = [shares[[indices[j] for j in members]].mean(0) for _, members in words]
        results[i] = described(model, side, clean[i], [text for text, _ in words], values)
    return results


def described(model: ProportionModel, side: str, sentence: str, words: list[str], values: list[Any]) -> SentenceProportions:
    """A sentence's proportions as plain data, given `values` (P, k) of each word."""
    layers = np.mean(values, axis=0) if values else None  # (P, k)
    return {
        "sentence": sentence,
        "side": side,
        "domains": model.domains,
        "layers": layer_names(side, len(model.layers[side])),
        "mean": rounded(layers.mean(0)) if layers is not None else None,
        "layer_means": rounded(layers) if layers is not None else None,
        "words": [
            {"text": text, "proportions": rounded(value.mean(0)), "shared": shared(value.mean(0)), "layers": rounded(value)}
            for text, value in zip(words, values, strict=True)
        ],
    }

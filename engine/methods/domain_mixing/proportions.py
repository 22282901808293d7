"""Domain proportions by themselves: fitted on a frozen base right after an upload, and read off any sentence.

L_mix needs no translation model to be trained: only R, on the states of the base. So the proportions can be had before
any training. Two things are decided here that the paper, whose sentences all have sources, leaves open.

Sources.  Where all sentences have sources (the user's, or back-translations), the encoder reads these, and the decoder
    reads the sentence by teacher forcing over them. Where they have none, none are made, which would take minutes: the
    decoder reads the sentence over an empty source, as a language model would, and the encoder reads the sentence itself
    where the base translates the other way round as well.
Amount.   Some thousand pieces a domain are enough for k numbers a layer; more are drawn at random, by whole sentences.
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

LEAST = 8  # sentences of a domain
HELD_OUT = 10  # one sentence of so many is held out
LARGEST = 400 << 20  # bytes of states that are held at once
LONGEST = 256  # tokens of a sentence

Sentence = Any  # a text, or anything with `source` and `text` or `target`


def parts(sentence: Sentence) -> tuple[str | None, str]:
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
    """Fit R of every layer by L_mix on the frozen base's states of the sentences of two or more domains.

    Of `config` epsilon, ridge, balance and words are read. The result's `held_out` says how well words of sentences that
    were not fitted on lean to their own domain, and in `corpus` what is to be seen of all words, with an `index` of them where
    asked. Raises CorpusError when a domain has fewer than 8 sentences or there is one domain only.
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
    given = all(parts(one)[0] for some in sentences.values() for one in some)
    side_base = None if given else reversed_base(base)
    with base.lock, torch.inference_mode(False):
        budget = min(
            config.words, LARGEST // (2 * base.d_model * sum(proportion_layer_counts(base).values()) * len(names))
        )
        drawn = [draw(base, list(sentences[name]), budget, random.Random(f"{seed}/{name}")) for name in names]
        chosen = [one for one, _ in drawn for one in one]
        owner = torch.tensor([j for j, (some, _) in enumerate(drawn) for _ in some])  # (sentences,)
        targets = [parts(one)[1] for one in chosen]
        sources = short(base, [parts(one)[0] or "" for one in chosen]) if given else None
        result = collect(base, sources, base.encode_target(targets), progress=progress)
        if side_base is not None:
            result |= collect(side_base, short(side_base, targets), None, progress=progress)
    weights = domain_weights([total for _, total in drawn], balance)
    model = ProportionModel(
        names, epsilon, {}, weights, ridge or 0.0, "source" if given else "target" if side_base else "", given,
        base.fingerprint(),
    )  # fmt: skip
    held = held_out(owner, seed)
    steps, done = sum(len(tokens.states) for tokens in result.values()), 0
    for side, tokens in sorted(result.items()):
        domain = owner.to(tokens.sentence.device)[tokens.sentence]  # (n,)
        out = held.to(tokens.sentence.device)[tokens.sentence]  # (n,)
        scale = domain_weights(torch.bincount(domain[~out], minlength=len(names)).tolist(), balance)
        with one_thread():
            if ridge is None and side == "decoder":  # found first, used for both sides
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
        model.held_out[side] = figures(shares[out], domain[out], tokens.sentence[out], side)
        model.corpus[side] = corpus_summary(base, model, side, tokens, shares, domain, index)
    progress.advance(steps, steps)
    return model


def corpus_proportions(
    base: BaseModel, model: ProportionModel, pairs: Mapping[str, Sequence[Sentence]], *,
    plugin: Adapter | None = None, progress: Progress | None = None,
) -> dict[str, CorpusSummary]:  # fmt: skip
    """What `fit_proportions` leaves in `corpus`, with an index of the words, for proportions that are there already, as those of
    a trained plugin, which is attached meanwhile. All sentences have sources; those of domains that the model does not know
    are passed over.
    """
    import torch

    from engine.methods.domain_mixing.states import collect

    known = [(j, *parts(one)) for j, name in enumerate(model.domains) for one in pairs.get(name, ())]
    result: dict[str, CorpusSummary] = {}
    if known:
        with base.using(plugin):
            sources = short(base, [source or "" for _, source, _ in known])
            labels = [row[: base.max_tokens] for row in base.encode_target([target for _, _, target in known])]
            tokens_of = collect(base, sources, labels, progress=progress)
        for side, tokens in sorted(tokens_of.items()):
            owner = torch.tensor([j for j, _, _ in known], device=tokens.sentence.device)  # (sentences,)
            shares = model.proportions(side, tokens.states)  # (n, P, k)
            result[side] = corpus_summary(base, model, side, tokens, shares, owner[tokens.sentence], True)
    return result


def check_domains(sentences: Mapping[str, Sequence[Sentence]]) -> None:
    """Raises CorpusError where there is nothing to tell apart."""
    if len(sentences) < 2:
        raise CorpusError(
            "Proportions need two domains or more. Provide a file for each domain, or a general one as another."
        )
    for name, some in sentences.items():
        if len(some) < LEAST:
            raise CorpusError(
                "The domain {name} has {count} sentences; at least {least} are needed. Add more.",
                name=name, count=len(some), least=LEAST,
            )  # fmt: skip


def reversed_base(base: BaseModel) -> BaseModel | None:
    """The base for the other direction where the same weights know it, so that its encoder reads the target language."""
    try:
        return base.for_direction(base.target, base.source)
    except ModelError:
        return None


def short(base: BaseModel, texts: Sequence[str]) -> list[list[int]]:
    """Source tokens, cut where the base can read no more."""
    return [row[: base.max_tokens] for row in base.encode(texts)]


def draw(
    base: BaseModel, sentences: list[Sentence], words: int, random_: random.Random
) -> tuple[list[Sentence], float]:
    """Sentences in random order until they have `words` pieces, and how many pieces the whole domain has about."""
    random_.shuffle(sentences)
    chosen: list[Sentence] = []
    pieces = 0
    for begin in range(0, len(sentences), 256):
        some = sentences[begin : begin + 256]
        for one, ids in zip(some, base.encode_target([parts(one)[1] for one in some]), strict=True):
            if 1 < len(ids) <= min(LONGEST, base.max_tokens) and (pieces < words or len(chosen) < LEAST):
                chosen.append(one)
                pieces += len(ids)
        if pieces >= words:
            break
    return chosen, pieces * len(sentences) / max(1, len(chosen))


def held_out(owner: torch.Tensor, seed: int) -> torch.Tensor:
    """True for the sentences held out: one of ten of each domain, at least one; `owner` (sentences,) names domains."""
    import torch

    draw_ = torch.Generator().manual_seed(seed)
    held = torch.zeros(len(owner), dtype=torch.bool)
    for j in owner.unique():
        rows = (owner == j).nonzero()[:, 0]
        held[rows[torch.randperm(len(rows), generator=draw_)[: max(1, len(rows) // HELD_OUT)]]] = True
    return held  # (sentences,)


def figures(shares: torch.Tensor, domain: torch.Tensor, sentence: torch.Tensor, side: str) -> HeldOut:
    """Of held-out words: the mean proportion of their own domain and the share that leans to it, over all domains alike, by
    layer; of held-out sentences the share whose mean leans to it. `shares` is (n, P, k), the others (n,).
    """
    import torch

    own, right = [], []
    for j in domain.unique():
        some = shares[domain == j]  # (m, P, k)
        own.append(some[..., j].mean(0))  # (P,)
        right.append((some.argmax(-1) == j).float().mean(0))  # (P,)
    mean, leaning = torch.stack(own).mean(0), torch.stack(right).mean(0)  # (P,), (P,)
    whole = [shares[sentence == i].mean((0, 1)).argmax() == domain[sentence == i][0] for i in sentence.unique()]
    return {
        "layers": layer_names(side, shares.shape[1]),
        "words": len(shares),
        "own_proportion": rounded(mean.cpu()),
        "words_leaning_right": rounded(leaning.cpu()),
        "sentences": len(whole),
        "sentences_leaning_right": round(float(sum(map(int, whole))) / max(1, len(whole)), 4),
    }


def language_of(base: BaseModel, model: ProportionModel, side: str) -> str:
    """The language of the words on a side."""
    return base.source if side == "encoder" and model.encoder_reads == "source" else base.target


def corpus_summary(
    base: BaseModel, model: ProportionModel, side: str, tokens: TokenStates, shares: torch.Tensor, domain: torch.Tensor,
    index: bool,
) -> CorpusSummary:  # fmt: skip
    """`summary` of words, each the mean of its pieces."""
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
    """The domain proportions of every word of sentences, as data: over all layers and for each.

    On the side "decoder" sentences are in the target language, over `sources` or an empty source. On the side "encoder"
    they are in the language that the model's encoder reads (`encoder_reads`). `plugin` is attached meanwhile, for the
    proportions of a trained one (`MixingModule.proportion_model`). A sentence longer than the base can read is cut. Raises
    InputError where the model has no such side.
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
    read_by = (
        base.for_direction(base.target, base.source) if side == "encoder" and model.encoder_reads == "target" else base
    )
    with base.using(plugin):
        texts = [clean[i] for i in selected]
        inputs: list[list[int]] | None = None
        labels: list[list[int]] | None = None
        if side == "encoder":
            inputs = short(read_by, texts)
        else:
            labels = [row[: base.max_tokens] for row in base.encode_target(texts)]
            if sources is not None:
                inputs = short(base, [" ".join(sources[i].split()) for i in selected])
        tokens = collect(read_by, inputs, labels, half=False, progress=progress)[side]
        shares = model.proportions(side, tokens.states).cpu().numpy()  # (n, P, k)
    pieces = base.tokenizer.convert_ids_to_tokens(tokens.ids.tolist())
    where = tokens.sentence.tolist()
    spaceless = unspaced(language_of(base, model, side))
    for row, i in enumerate(selected):
        mine = [index for index, owner in enumerate(where) if owner == row]
        words = words_of([pieces[index] for index in mine], unspaced=spaceless)
        values = [shares[[mine[j] for j in members]].mean(0) for _, members in words]
        results[i] = described(model, side, clean[i], [text for text, _ in words], values)
    return results


def described(
    model: ProportionModel, side: str, sentence: str, words: list[str], values: list[Any]
) -> SentenceProportions:
    """A sentence's proportions as plain data; `values` (P, k) for each word."""
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
    }  # fmt: skip

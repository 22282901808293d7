"""Evaluating a parser set on unseen sentences: words, tags, heads, brackets, phrases by length, and speed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from engine.builders.parsers.conllu import ConlluSentence
from engine.builders.parsers.scores import bracket_scores, f1, ud_scores
from engine.builders.parsers.treebanks import Treebanks
from engine.core.progress import Progress
from engine.phrases.constituency import constituency_spans
from engine.phrases.dependency import dependency_spans
from engine.phrases.options import PhraseOptions
from engine.phrases.parsed_sentence import Parsed, read_stanza
from engine.phrases.stanza_models import StanzaModel, find_models, load_pipeline, local_pipeline
from engine.phrases.token_spans import align, clean_spans

BANDS = ((1, 1), (2, 2), (3, 4), (5, 7), (8, 10))  # phrase lengths reported together
KINDS = {"dependency": dependency_spans, "constituency": constituency_spans}
BATCH = 200  # sentences between two progress updates
AT_MOST = 1000  # test sentences; more only take longer
PhraseSpans = set[tuple[int, int, int]]  # first character, character after the last, length in tokens


def measure(language: str, folder: Path, banks: Treebanks, progress: Progress | None = None) -> dict[str, object]:
    """Figures of the set in `folder` on the first 1,000 test sentences and trees of `banks`; no entry for a missing kind.

    Measured on raw text, one sentence at a time as in phrase extraction, and with the words given. Speeds count CPU seconds,
    so that other processes do not matter, and exclude loading.
    """
    progress = progress or Progress()
    figures: dict[str, object] = {}
    if banks.sentences.test:
        progress.begin("Measuring the dependency parser")
        figures["dependency"] = measure_dependency(language, folder, banks.sentences.test[:AT_MOST], progress)
    trees = with_sentences(banks)
    if trees:
        progress.begin("Measuring the constituency parser")
        figures["constituency"] = measure_constituency(language, folder, trees[:AT_MOST], progress)
    return figures


def measure_dependency(language: str, folder: Path, test: Sequence[ConlluSentence], progress: Progress) -> dict[str, object]:
    model = next(find_models(language, "dependency", [folder]))
    pipeline = load_pipeline(model)
    longest = PhraseOptions().longest(language)
    texts = [sentence.text for sentence in test]
    documents, seconds = parse(pipeline, texts, progress)
    parsed = [readings(document, text) for document, text in zip(documents, texts, strict=True)]
    gold = "".join(sentence.conllu() + "\n\n" for sentence in test)
    raw = ud_scores(gold, "".join(format(document, "C") + "\n\n" for document in documents))
    given_words = ud_scores(*pretokenized(model, test))
    return {
        "sentences": len(test),
        "sentences_per_second": round(len(test) / seconds, 1),
        "raw": raw,
        "given_words": {name: given_words[name] for name in ("UPOS", "XPOS", "UAS", "LAS")},
        "phrases": phrase_scores([gold_parsed(sentence) for sentence in test], parsed, "dependency", longest, len(texts)),
    }


def measure_constituency(
    language: str, folder: Path, test: Sequence[tuple[ConlluSentence, Any]], progress: Progress
) -> dict[str, object]:
    model = next(find_models(language, "constituency", [folder]))
    pipeline = load_pipeline(model)
    longest = PhraseOptions().longest(language)
    texts = [sentence.text for sentence, _ in test]
    documents, seconds = parse(pipeline, texts, progress)
    parsed = [readings(document, text) for document, text in zip(documents, texts, strict=True)]
    word_pipeline = open_pretokenized(model)
    document = word_pipeline([[word.form for word in sentence.words] for sentence, _ in test])
    pairs = [(tree, result.constituency) for (_, tree), result in zip(test, document.sentences, strict=True)]
    tags = [
        (word.xpos, right.label)
        for result, (_, tree) in zip(document.sentences, test, strict=True)
        for word, right in zip(result.words, tree.yield_preterminals(), strict=True)
    ]
    return {
        "sentences": len(test),
        "sentences_per_second": round(len(test) / seconds, 1),
        "given_words": {**bracket_scores(pairs), "XPOS": sum(a == b for a, b in tags) / len(tags)},
        "phrases": phrase_scores(
            [gold_parsed(sentence, tree) for sentence, tree in test], parsed, "constituency", longest, len(texts)
        ),
    }


def with_sentences(banks: Treebanks) -> list[tuple[ConlluSentence, Any]]:
    """The test trees with their sentences from a dependency treebank of the same texts; trees without one are left out."""
    return [(sentence, tree) for letters, tree in banks.test_trees() if (sentence := banks.texts.get(letters)) is not None]


def gold_parsed(sentence: ConlluSentence, tree: Any = None) -> Parsed:
    """A treebank sentence in the form of a parsed one, as input for phrase extraction."""
    tokens = [token.form for token in sentence.tokens]
    offsets = align(tokens, sentence.text)
    assert offsets is not None, sentence.text  # the text is made from the tokens
    words = sentence.words
    token_of = [index for index, token in enumerate(sentence.tokens) for _ in token.words]
    return Parsed(
        words=tuple(word.form for word in words),
        tags=tuple(word.upos for word in words),
        heads=tuple(word.head - 1 for word in words),
        relations=tuple(word.relation for word in words),
        tree=tree,
        tokens=tuple(tokens),
        offsets=tuple(offsets),
        token_of=tuple(token_of),
    )


def phrase_spans(parsed: Parsed, kind: str, longest: int) -> PhraseSpans:
    """The phrases that the extraction finds in one sentence, as character positions in its text and lengths in tokens."""
    spans = clean_spans(KINDS[kind](parsed), parsed.tokens, shortest=1, longest=longest)
    return {(parsed.offsets[head][0], parsed.offsets[last - 1][1], last - head) for head, last, _ in spans}


def phrase_scores(
    gold: Sequence[Parsed], predicted: Sequence[Iterable[Parsed]], kind: str, longest: int, sentences: int
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of phrases by length in tokens, counting every occurrence. A phrase is right if it covers the
    same characters as a phrase of the gold tree. `all` includes every length, `2+` all but single words.
    """
    right_predicted, right_gold, total_predicted, total_gold = (Counter[int](), Counter[int](), Counter[int](), Counter[int]())
    for truth, readings in zip(gold, predicted, strict=True):
        gold_spans = phrase_spans(truth, kind, longest)
        predicted_spans = {position for parsed in readings for position in phrase_spans(parsed, kind, longest)}
        gold_positions = {position[:2] for position in gold_spans}
        predicted_positions = {position[:2] for position in predicted_spans}
        for first, last, length in predicted_spans:
            total_predicted[length] += 1
            right_predicted[length] += (first, last) in gold_positions
        for first, last, length in gold_spans:
            total_gold[length] += 1
            right_gold[length] += (first, last) in predicted_positions
    bands = {f"{low}" if low == high else f"{low}-{high}": (low, high) for low, high in BANDS if low <= longest}
    bands |= {"2+": (2, longest), "all": (1, longest)}
    scores = {}
    for name, (low, high) in bands.items():
        lengths = range(low, min(high, longest) + 1)
        precision = f1(sum(right_predicted[n] for n in lengths), sum(total_predicted[n] for n in lengths), 1)["precision"]
        recall = f1(sum(right_gold[n] for n in lengths), 1, sum(total_gold[n] for n in lengths))["recall"]
        total = precision + recall
        scores[name] = {
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / total if total else 0.0,
            "gold": sum(total_gold[n] for n in lengths),
        }
    return scores


def open_pretokenized(model: StanzaModel) -> Any:
    """A stanza pipeline of the model's packages for pretokenized input."""
    packages = {name: package for name, package in model.packages if name != "mwt"}
    return local_pipeline(model.language, model.folder, packages, tokenize_pretokenized=True)


def parse(pipeline: Any, texts: Sequence[str], progress: Progress) -> tuple[list[Any], float]:
    """A stanza document for each text, and the CPU seconds taken."""
    from stanza.models.common.doc import Document

    documents: list[Any] = []
    started = time.process_time()
    for position in range(0, len(texts), BATCH):
        progress.advance(position, len(texts), "parsing held-out sentences")
        documents += pipeline.bulk_process([Document([], text=text) for text in texts[position : position + BATCH]])
    seconds = time.process_time() - started
    progress.advance(len(texts), len(texts), "parsing held-out sentences")
    return documents, seconds


def readings(document: Any, text: str) -> list[Parsed]:
    """The sentences of a parsed text as input for phrase extraction."""
    results = [read_stanza(sentence, text) for sentence in document.sentences if sentence.tokens]
    return [parsed for parsed in results if parsed is not None]


def pretokenized(model: Any, test: Sequence[ConlluSentence]) -> tuple[str, str]:
    """Gold and system CoNLL-U over the words of the treebank."""
    pipeline = open_pretokenized(model)
    document = pipeline([[word.form for word in sentence.words] for sentence in test])
    gold = "".join(sentence.without_contractions().conllu() + "\n\n" for sentence in test)
    return gold, format(document, "C") + "\n\n"

"""Multi-granular phrases of a corpus, and the tree of one sentence (paper 1, section 4.2 and figure 2a)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from engine.core.languages import language_message, unspaced
from engine.core.progress import Progress
from engine.core.remote_map import map_remotely
from engine.corpora.inline_tags import code_spans
from engine.errors import InputError, MissingError
from engine.messages import Message, mark
from engine.phrases.constituency import constituency_spans, constituency_tree
from engine.phrases.dependency import dependency_spans, dependency_tree
from engine.phrases.languages import stanza_code
from engine.phrases.options import PhraseOptions
from engine.phrases.parsed_sentence import Parsed
from engine.phrases.remote import PARSE, parse_arguments, read_parse
from engine.phrases.stanza_models import StanzaModel, advice, download_model, find_models, load_pipeline
from engine.phrases.stanza_runner import parse_sentences
from engine.phrases.statistical import Association
from engine.phrases.token_spans import clean_spans
from engine.phrases.tokenize import Pieces
from engine.phrases.types import Phrase, PhraseSet, Tree

DRAWABLE = 1000  # characters
MAKE_SPANS = {"constituency": constituency_spans, "dependency": dependency_spans}
MAKE_TREE = {"constituency": constituency_tree, "dependency": dependency_tree}
EVERY = 5000  # candidates between two progress updates
PART = 256  # sentences that another machine parses in one part


class Drawing(NamedTuple):
    """Where to store trees: `save` receives each sentence with its tree, including those of `also`, which give no phrases."""

    save: Callable[[str, Tree], None]
    also: Sequence[str] = ()


def extract_phrases(
    sentences: Sequence[str],
    language: str,
    options: PhraseOptions | None = None,
    *,
    parser_dirs: Sequence[Path] = (),
    pieces: Pieces | None = None,
    drawing: Drawing | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> PhraseSet:
    """The phrases of the user's sentences with their counts, exactly as they occur there.

    `language` is the sentences' code (en, zh, zho_Hans…). `parser_dirs` are folders with stanza models, the preferred one
    first. `pieces` returns a sentence's pieces in the base's vocabulary, for the statistical method in languages without
    spaces. `drawing` requests the trees of all sentences that can be drawn. stanza's models run on `device`, a name for
    `pick_device`. Progress advances in sentences. Results are deterministic.

    Raises MissingError if the requested parser is not on disk (or cannot be downloaded), ModelError if it fails on everything,
    Cancelled.
    """
    options = options or PhraseOptions()
    progress = progress or Progress()
    first: dict[str, int] = {}
    for index, sentence in enumerate(sentences):
        first.setdefault(sentence, index)
    repeats = Counter(sentences)  # duplicate sentences are parsed once
    texts = list(first)
    codes = lru_cache(maxsize=64)(code_spans)  # candidates come sentence by sentence
    longest = options.longest(language)
    collector = Collector()
    if not texts:
        return PhraseSet([], "There were no sentences to parse.")
    model, pipeline, why = _open_parser(language, options, parser_dirs, device)
    if model is None:
        association = Association(language, pieces)
        candidates = association.count(texts, weights=[repeats[text] for text in texts], longest=longest, progress=progress)
        for number, (position, start, end, length, sound) in enumerate(candidates):
            if number % EVERY == 0:
                progress.advance(len(texts), len(texts), "collecting phrases")
            text = texts[position]
            if options.min_length <= length <= longest and free_of(codes(text), start, end):
                collector.add(text[start:end], length, "statistical", first[text], weight=repeats[text], sound=sound)
        if drawing is not None:
            for number, text in enumerate([*texts, *drawing.also]):
                if number % EVERY == 0:
                    progress.advance(number, len(texts) + len(drawing.also), "drawing trees")
                if len(text) <= DRAWABLE:
                    drawing.save(text, association.tree(text))
        parser = Message(
            "Statistical: phrases are cut where neighbouring {units} belong together least, {why}.",
            units=Message(_unit_name(language, pieces)), why=why,
        )  # fmt: skip
    else:
        spans_of = MAKE_SPANS[model.kind]
        everything = [*texts, *drawing.also] if drawing is not None else texts
        for position, parses in _parsed(parse_arguments(model, device), pipeline, everything, progress):
            tree = whole_tree(model.kind, parses, everything[position]) if drawing is not None else None
            if drawing is not None and tree is not None:
                drawing.save(everything[position], tree)
            for parsed in parses if position < len(texts) else ():
                spans = clean_spans(spans_of(parsed), parsed.tokens, shortest=options.min_length, longest=longest)
                text = texts[position]
                for head, last, label in spans:
                    start, end = parsed.offsets[head][0], parsed.offsets[last - 1][1]
                    if free_of(codes(text), start, end):
                        collector.add(text[start:end], last - head, label, first[text], weight=repeats[text])
        units = mark("constituents") if model.kind == "constituency" else mark("contiguous dependency subtrees")
        parser = Message("Phrases are the {units} found by {parser}.", units=Message(units), parser=model.named)
    return PhraseSet(collector.phrases(min_count=options.min_count), parser)


def parse_tree(
    sentence: str,
    language: str,
    options: PhraseOptions | None = None,
    *,
    parser_dirs: Sequence[Path] = (),
    sentences: Sequence[str] = (),
    association: Association | None = None,
) -> Tree:
    """The tree of one sentence for drawing, by the parser that `extract_phrases` would use, on the CPU.

    Without a parser, the statistical tree needs a corpus: `association` if available (counting takes seconds; see
    `Association.count`), else `sentences` are counted, else the sentence itself, which splits at punctuation and little more.

    Raises InputError on an empty sentence or one of more than 1,000 characters, MissingError as `extract_phrases`.
    """
    if not sentence.strip():
        raise InputError("There is no sentence to draw: choose one with at least one word.")
    if len(sentence) > DRAWABLE:
        raise InputError(
            "This sentence has {count} characters: only sentences up to {drawable} can be drawn.",
            count=len(sentence),
            drawable=DRAWABLE,
        )
    model, pipeline, _ = _open_parser(language, options or PhraseOptions(), parser_dirs, "cpu")
    if model is not None:
        ((_, parses),) = parse_sentences(pipeline, [sentence])
        tree = whole_tree(model.kind, parses, sentence)
        if tree is not None:
            return tree
    if association is None:
        association = Association(language)
        association.count([*sentences] or [sentence])
    return association.tree(sentence)


def _parsed(
    arguments: Mapping[str, object], pipeline: Any, sentences: Sequence[str], progress: Progress
) -> Iterator[tuple[int, list[Parsed]]]:
    """Each sentence's index with its parses, in order; other machines may parse them (engine.core.remote_map)."""
    parts = [list(sentences[position : position + PART]) for position in range(0, len(sentences), PART)]
    elsewhere = map_remotely(PARSE, lambda: arguments, parts, progress)
    if elsewhere is None:
        yield from parse_sentences(pipeline, sentences, progress)
        return
    position = 0
    for rows in elsewhere:
        for parses in rows:
            yield position, [read_parse(row) for row in parses]
            position += 1
        progress.advance(position, len(sentences), "parsing")


def free_of(codes: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether text[start:end] does not overlap tags, links or placeholders; otherwise it is not a phrase."""
    return not any(start < last and first < end for first, last in codes)


def whole_tree(kind: str, parses: Sequence[Parsed], sentence: str) -> Tree | None:
    """The tree of a sentence whose parts were parsed separately; None if no part was parsed or it is too long to draw."""
    if len(sentence) > DRAWABLE:
        return None
    trees = [tree for parsed in parses if (tree := MAKE_TREE[kind](parsed, sentence)) is not None]
    if len(trees) < 2:
        return trees[0] if trees else None
    return Tree("sentence", sentence.strip(), tuple(trees))


def _open_parser(
    language: str, options: PhraseOptions, folders: Sequence[Path], device: str
) -> tuple[StanzaModel | None, Any, str]:
    """The parser to use and its loaded pipeline; or None, and the reason, as the end of a sentence."""
    if options.parser == "statistical":
        return None, None, Message("as the settings say")
    automatic = options.parser == "auto"
    kinds = ("constituency", "dependency") if automatic else (options.parser,)
    problems: list[MissingError] = []
    for model in _offered(language, kinds, folders, options.download):
        try:
            return model, load_pipeline(model, device), ""
        except MissingError as error:
            problems.append(error)
    if automatic:
        if problems:
            return None, None, Message("since {problem}", problem=str(problems[0]).removesuffix("."))
        name = language_message(language)
        if options.download:
            return None, None, Message("since stanza offers no parser for {language}", language=name)
        return None, None, Message(
            "since no parser for {language} is installed; for phrases by grammar {advice}",
            language=name, advice=advice(language, kinds[0], folders),
        )  # fmt: skip
    if problems:
        raise problems[0]
    code = stanza_code(language)
    if options.download:
        raise MissingError(
            "stanza offers no {parser} parser for {code}: choose another parser, or auto.", parser=options.parser, code=code
        )
    raise MissingError(
        "No {parser} parser for {code} is installed: {advice}, or choose another parser.",
        parser=options.parser, code=code, advice=advice(language, options.parser, folders),
    )  # fmt: skip


def _offered(language: str, kinds: Sequence[str], folders: Sequence[Path], download: bool) -> Iterator[StanzaModel]:
    result = False
    for kind in kinds:
        for model in find_models(language, kind, folders):
            result = True
            yield model
    if download and not result:
        model_or_none = download_model(language, kinds, folders)
        if model_or_none is not None:
            yield model_or_none


def _unit_name(language: str, pieces: Pieces | None) -> str:
    if not unspaced(language):
        return mark("words")
    return mark("pieces of words") if pieces is not None else mark("characters")


class Collector:
    """Merges phrases that differ only in case or in spaces, keeping the most frequent form and label."""

    def __init__(self) -> None:
        # (text, label, length) -> [count, places, plausible, first sentence]
        self._seen: dict[tuple[str, str, int], list[Any]] = {}

    def add(self, text: str, length: int, label: str, sentence: int, *, weight: int = 1, sound: bool = True) -> None:
        """Add one occurrence in `sentence` (an index), which itself occurs `weight` times."""
        row = self._seen.get((text, label, length))
        if row is None:
            self._seen[text, label, length] = [weight, 1, sound, sentence]
        else:
            row[0] += weight
            row[1] += 1
            row[2] = row[2] or sound

    def phrases(self, *, min_count: int = 1) -> list[Phrase]:
        """All frequent enough phrases that are plausible or found in two places; sorted by length, count, text."""
        return sorted(self._merged(min_count), key=lambda phrase: (phrase.length, -phrase.count, phrase.text))

    def _merged(self, min_count: int) -> Iterator[Phrase]:
        groups: dict[str, list[tuple[str, str, int]]] = {}
        for key in self._seen:
            groups.setdefault(" ".join(key[0].casefold().split()), []).append(key)
        for keys in groups.values():
            rows = [self._seen[key] for key in keys]
            count = sum(row[0] for row in rows)
            plausible = any(row[2] for row in rows) or sum(row[1] for row in rows) >= 2
            if count < min_count or not plausible:
                continue
            forms: dict[str, list[int]] = {}
            labels: dict[str, int] = {}
            lengths: dict[int, int] = {}
            for (text, label, length), row in zip(keys, rows, strict=True):
                form = forms.setdefault(text, [0, row[3]])
                form[0] += row[0]
                form[1] = min(form[1], row[3])
                labels[label] = labels.get(label, 0) + row[0]
                lengths[length] = lengths.get(length, 0) + row[0]
            text = min(forms, key=lambda form: (-forms[form][0], form))
            label = min(labels, key=lambda name: (-labels[name], name))
            length = min(lengths, key=lambda size: (-lengths[size], size))
            yield Phrase(text=text, length=length, count=count, label=label, example=forms[text][1])

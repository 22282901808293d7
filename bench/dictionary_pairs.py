#!/usr/bin/env python3
"""Sentence pairs that teach a base the words of a dictionary: how the German-English base got its `ding.*` files.

    apt-get install trans-de-en; pip install wordfreq
    python bench/dictionary_pairs.py --dictionary /usr/share/trans/de-en --sentences tatoeba.tsv ted.tsv … --output build/ding

Three files, German and English by a tab: `words`, entries with their inflected forms, where both sides are in use; `sents`, the
dictionary's example sentences; `context`, short sentences in which a noun and its translation were exchanged for others of the same
gender (Fadaee et al., 2017), more for nouns that are used more. What is in `--held-out` is left out.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

NOTE = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|/[^/]*/|<[^>]*>")
BLANK = re.compile(r"\b(etw|jdn?m?s?|jds|jmd[mns]?|sth|sb|oneself|sich|smb|smth)\b")  # stands for anything
IN_USE = 2.3  # Zipf frequency, the mean of both sides' rarest words
TO_TEACH = 2.2  # of a noun
LONGEST = 14  # words of a sentence in which nouns are exchanged
SENSES = 2


def senses(side: str) -> list[str]:
    """The translations of one side, which stand between semicolons outside of brackets."""
    depth, parts = 0, [""]
    for letter in side:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == ";" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", NOTE.sub(" ", text)).strip(" ,.;")


def columns(dictionary: Path) -> Iterator[tuple[int, str, str]]:
    """Number, German and English of each form of each entry."""
    for line in dictionary.read_text(encoding="utf-8").splitlines():
        german, separator, english = line.partition(" :: ")
        sides = german.split(" | "), english.split(" | ")
        if separator and not line.startswith("#") and len(sides[0]) == len(sides[1]):
            yield from ((i, *pair) for i, pair in enumerate(zip(*sides, strict=True)))


def rarest(text: str, language: str) -> float:
    from wordfreq import zipf_frequency

    return min((float(zipf_frequency(word, language)) for word in re.findall(r"\w+", text)), default=0.0)


def entries(dictionary: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]], dict[tuple[str, str], list[str]]]:
    """Words, example sentences, and {(noun, gender): translations}."""
    words: dict[tuple[str, str], float] = {}
    sentences: dict[tuple[str, str], None] = {}
    nouns: dict[tuple[str, str], list[str]] = defaultdict(list)
    for form, german, english in columns(dictionary):
        ends = re.search(r"[.!?]$", german.strip()) and re.search(r"[.!?]$", english.strip())
        if ends and len(german.split()) > 2 and not re.search(r"[;/\[\](){}<>]", german + english):
            sentences[german.strip(), english.strip()] = None
            continue
        for i, sense in enumerate(senses(german)[:SENSES]):
            gender = re.search(r"\{(m|f|n)\}", sense)
            for k, other in enumerate(senses(english)[:SENSES]):
                a, b = plain(sense), plain(other)
                if not a or not b or BLANK.search(a) or BLANK.search(b) or "/" in a + b or max(a.count(" "), b.count(" ")) > 5:
                    continue
                use = (rarest(a, "de") + rarest(b, "en")) / 2
                if use >= IN_USE:
                    words[a, b] = max(words.get((a, b), 0.0), use - 0.5 * (i + k))
                if gender and not form + i + k and re.fullmatch(r"[A-ZÄÖÜ][a-zäöüß]+", a) and re.fullmatch(r"[A-Za-z]+", b):
                    nouns[a, gender[1]].append(b)
    return sorted(words, key=lambda pair: -words[pair]), list(sentences), nouns


def exchanged(
    nouns: dict[tuple[str, str], list[str]], sentences: list[tuple[str, str]], dice: random.Random
) -> Iterator[tuple[str, str]]:
    """Sentences with other nouns in them."""
    genders = defaultdict(set)
    for noun, gender in nouns:
        genders[noun].add(gender)
    by_noun = {noun: (gender, sorted(set(nouns[noun, gender]), key=lambda word: -rarest(word, "en"))) for noun, gender in nouns}
    by_noun = {noun: entry for noun, entry in by_noun.items() if len(genders[noun]) == 1}
    slots: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    for german, english in sentences:
        for noun in set(re.findall(r"\b[A-ZÄÖÜ][a-zäöüß]+\b", german)) & by_noun.keys():
            gender, translations = by_noun[noun]
            there = next((word for word in translations if re.search(rf"(?<![\w-]){word.lower()}(?![\w-])", english)), None)
            if there and german.count(noun) == 1 and not german.startswith(noun) and english.lower().count(there.lower()) == 1:
                slots[gender].append((german, english, noun, there.lower()))
    for noun, (gender, translations) in by_noun.items():
        use = rarest(noun, "de")
        for _ in range(0 if use < TO_TEACH else 3 if use <= 2.6 else 5 if use < 3 else 8):
            german, english, old, was = dice.choice(slots[gender])
            new = translations[0] if len(translations) == 1 or dice.random() < 0.6 else dice.choice(translations[1:])
            article = r"\1n " if new[0].lower() in "aeiou" else r"\1 "
            english = re.sub(rf"(?<![\w-]){was}(?![\w-])", f"\0{new}", english, count=1)
            yield re.sub(rf"\b{old}\b", noun, german), re.sub(r"\b([Aa])n? \0", article, english).replace("\0", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dictionary", type=Path, required=True, help="Ding's file")
    parser.add_argument("--sentences", type=Path, nargs="+", required=True, help="pairs, German first, also .gz")
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="pairs that must not be learned")
    parser.add_argument("--output", type=Path, required=True, help="folder")
    args = parser.parse_args()

    def pairs(file: Path) -> Iterator[tuple[str, str]]:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:  # type: ignore[operator]
            for line in lines:
                german, _, english = line.rstrip("\n").partition("\t")
                yield german, english.partition("\t")[0]

    dice = random.Random(7)
    barred = {text for file in args.held_out for pair in pairs(file) for text in pair}
    short = [pair for file in args.sentences for pair in pairs(file) if 3 <= len(pair[0].split()) <= LONGEST]
    words, examples, nouns = entries(args.dictionary)
    args.output.mkdir(parents=True, exist_ok=True)
    for name, candidates in (("words", words), ("sents", examples), ("context", list(exchanged(nouns, short, dice)))):
        selected = [pair for pair in candidates if name == "words" or not barred & set(pair)]
        (args.output / f"{name}.tsv").write_text("".join("\t".join(pair) + "\n" for pair in selected), encoding="utf-8")
        print(f"{name}: {len(selected):,} pairs")


if __name__ == "__main__":
    main()

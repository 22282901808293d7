"""Pairs from files, the vocabulary, and rows packed with sentences."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders.bases.filtering import drop_worst
from engine.builders.bases.packing import Examples, encode_pairs, pack, packed_batches
from engine.builders.bases.pairs import PairFile, clean_pairs, parse_back_translated, parse_weight, read_held_out, sample_texts
from engine.builders.bases.tokenised import tokenised_pairs
from engine.builders.bases.vocabulary import load_vocabulary, train_vocabulary
from engine.core.progress import Progress
from engine.corpora.clean import clean
from engine.errors import CorpusError, ModelError, OptionError
from tests.bases import EN_ZH, SENTENCES


def write(path: Path, lines: list[bytes | str]) -> Path:
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    return path


class TestPairs:
    def test_broken_lines_are_counted_by_reason_and_passed_over(self, tmp_path: Path) -> None:
        file = write(
            tmp_path / "pairs.tsv",
            ["\ufeffThe rain stopped.\t雨停了。", "no tab here", b"\xff\xfe\tx", "a\tb\tc", "\t空", "Hello.\tHello.",
             "The rain stopped.\t雨停了。", "Where is it?\tWo ist es denn?", "He left.\t他走了。"],
        )  # fmt: skip
        pairs = PairFile(file)
        assert list(clean_pairs(pairs, "en", "zh", held_out={"He left."})) == [("The rain stopped.", "雨停了。")]
        assert pairs.skipped == {
            "not two columns": 2, "not UTF-8": 1, "an empty side": 1, "the same on both sides": 1, "read before": 1,
            "the wrong script": 1, "held out": 1,
        }  # fmt: skip
        assert pairs.first["not two columns"] == 2
        assert pairs.first["not UTF-8"] == 3
        assert "1 of 9 pairs" in pairs.report()
        assert "2 not two columns (first: line 2)" in pairs.report()

    def test_a_pair_of_far_unequal_lengths_is_left_out_but_chinese_is_short_by_nature(self, tmp_path: Path) -> None:
        long = "This sentence goes on and on about nothing in particular until nobody listens to it any more."
        file = write(tmp_path / "a.tsv", [f"{long}\t是。", f"{long}\t这句话没完没了，说的都是些没要紧的事，直到没有人再听。"])
        pairs = PairFile(file)
        assert len(list(clean_pairs(pairs, "en", "zh"))) == 1
        assert pairs.skipped == {"one side far longer": 1}

    def test_gzip_and_plain_files_read_alike(self, tmp_path: Path) -> None:
        text = "\n".join("\t".join(pair) for pair in SENTENCES)
        plain = write(tmp_path / "a.tsv", [text])
        (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(plain.read_bytes()))
        read = [list(clean_pairs(PairFile(file), "en", "zh")) for file in (plain, tmp_path / "a.tsv.gz")]
        assert read[0] == read[1] == SENTENCES

    @pytest.mark.parametrize("content", [b"\x1f\x8b\x08 cut", b"not gzip at all"])
    def test_a_damaged_gzip_file_is_a_sentence(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "a.tsv.gz"
        file.write_bytes(content)
        with pytest.raises(CorpusError, match="cannot be read"):
            list(clean_pairs(PairFile(file), "en", "zh"))

    def test_a_file_that_is_no_table_is_refused_with_its_first_bad_line(self, tmp_path: Path) -> None:
        file = write(tmp_path / "novel.txt", ["Good.\t好。", "Call me Ishmael.", "Some years ago."])
        with pytest.raises(CorpusError, match=r"no table of pairs: 2 of its 3 lines .* first is line 2"):
            list(clean_pairs(PairFile(file), "en", "zh"))

    def test_a_missing_file_and_an_empty_held_out_file_are_sentences(self, tmp_path: Path) -> None:
        with pytest.raises(CorpusError, match="cannot be read"):
            list(clean_pairs(PairFile(tmp_path / "none.tsv"), "en", "zh"))
        with pytest.raises(CorpusError, match="holds no pair"):
            read_held_out([write(tmp_path / "empty.tsv", [""])])

    def test_weights_are_part_of_the_name(self, tmp_path: Path) -> None:
        odd = write(tmp_path / "a=2", ["x"])
        assert parse_weight("news.tsv=0.5") == PairFile(Path("news.tsv"), 0.5)
        assert parse_weight("news.tsv") == PairFile(Path("news.tsv"), 1.0)
        assert parse_weight(str(odd)) == PairFile(odd, 1.0)
        for bad in ("news.tsv=often", "news.tsv=0", "news.tsv=-1"):
            with pytest.raises(OptionError):
                parse_weight(bad)

    def test_back_translations_name_their_machine_translated_side(self) -> None:
        assert parse_back_translated("en:novels.tsv=0.3", ("en", "zh")) == PairFile(Path("novels.tsv"), 0.3, "en")
        for bad in ("novels.tsv", "fr:novels.tsv", "en:"):
            with pytest.raises(OptionError, match="name the machine-translated side first"):
                parse_back_translated(bad, ("en", "zh"))

    def test_the_quick_way_through_cleaning_changes_nothing(self, tmp_path: Path) -> None:
        texts = [
            " a  b ",
            "naïve café",
            "e\u0301tude",
            "全角，标点。",
            "a\u00a0b",
            "zero\u200bwidth",
            "⾬停了",
            "“引号”《书》",
            "ﬁne",
        ]
        targets = [f"这是用来试一试的第{i}行：{text}" for i, text in enumerate(texts)]
        file = write(tmp_path / "a.tsv", [f"This is line number {i} of the file.\t{text}" for i, text in enumerate(targets)])
        assert [target for _, target in clean_pairs(PairFile(file), "en", "zh")] == [clean(text) for text in targets]

    def test_a_sample_for_the_vocabulary_follows_the_weights(self, tmp_path: Path) -> None:
        files = []
        for name, weight in (("a", 1.0), ("b", 0.25)):
            lines: list[bytes | str] = [f"{name}{i}\t句{name}{i}" for i in range(2000)]
            files.append(PairFile(write(tmp_path / f"{name}.tsv", lines), weight))
        texts = sample_texts(files, 1000, 1, {"a1"}, Progress())
        assert "a1" not in texts
        assert 850 < len(texts) < 1150
        shares = [sum(text.lstrip("句").startswith(name) for text in texts) for name in "ab"]
        assert 3 < shares[0] / shares[1] < 5.5
        assert texts == sample_texts(files, 1000, 1, {"a1"}, Progress())


class TestTokenised:
    def test_pairs_are_tokenised_once_and_again_when_a_file_changes(self, tmp_path: Path) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        file = write(tmp_path / "a.tsv", ["\t".join(pair) for pair in SENTENCES])

        def made() -> tuple[Examples, PairFile]:
            pairs = PairFile(file, 0.5)
            return tokenised_pairs([pairs], vocabulary, tmp_path, longest=60), pairs

        (first, counts), plain = made(), encode_pairs(SENTENCES, [0.5] * len(SENTENCES), vocabulary, 60)
        assert counts.kept == len(SENTENCES)
        for side, same in zip(first.sides, plain.sides, strict=True):
            assert side.pieces.tolist() == same.pieces.tolist()
            assert side.starts.tolist() == same.starts.tolist()
        assert first.weights.tolist() == plain.weights.tolist()
        stamp = (tmp_path / "pairs/pairs.json").stat().st_mtime_ns
        again, counts = made()
        assert (tmp_path / "pairs/pairs.json").stat().st_mtime_ns == stamp
        assert counts.kept == counts.lines == len(SENTENCES)
        write(file, ["\t".join(SENTENCES[0])])
        assert len(made()[0]) == 2
        assert len(again) == 2 * len(SENTENCES), "what is mapped is not changed under its reader"

    def test_machine_translation_is_tagged_and_never_a_target(self, tmp_path: Path) -> None:
        from engine.builders.bases.packing import order_of_epoch

        texts = [text for pair in SENTENCES for text in pair] * 5
        vocabulary = train_vocabulary(lambda: texts, 400, "en", "zh", tmp_path)
        half = len(SENTENCES) // 2
        files = [
            PairFile(write(tmp_path / "real.tsv", ["\t".join(pair) for pair in SENTENCES[:half]])),
            PairFile(write(tmp_path / "back.tsv", ["\t".join(pair) for pair in SENTENCES[half:]]), synthetic="en"),
        ]
        examples = tokenised_pairs(files, vocabulary, tmp_path, longest=60)
        order = order_of_epoch(examples, 1, 0)
        assert sorted(order) == [*range(2 * half), *range(2 * half, 2 * len(SENTENCES), 2)]
        first = examples.sides[0].pieces[examples.sides[0].starts[:-1]]
        assert (first[half:] == vocabulary.synthetic).all()
        assert not (first[:half] == vocabulary.synthetic).any()

    def test_the_worst_share_of_each_file_is_left_out(self) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        examples = encode_pairs(SENTENCES[:4] * 10, [1.0] * 40, vocabulary, 60)
        examples = dataclasses.replace(examples, file=np.repeat([0, 1], 20))
        scores = np.arange(40, dtype=np.float16)
        assert drop_worst(examples, scores, 0.1, 2) == [2, 2]
        assert np.flatnonzero(examples.weights == 0).tolist() == [18, 19, 38, 39]


class TestVocabulary:
    def test_text_comes_back_as_it_was_whatever_its_characters(self, tmp_path: Path) -> None:
        from transformers import AutoTokenizer

        texts = [text for pair in SENTENCES for text in pair] * 5
        vocabulary = train_vocabulary(lambda: texts, 400, "en", "zh", tmp_path)
        (tmp_path / "config.json").write_text('{"model_type": "marian"}')
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        assert len(tokenizer) == vocabulary.size == 404
        for text in ("“那么，”他说：《狂人日记》……", "ｆｕｌｌ ｗｉｄｔｈ！", "𠮷野家 🍜 ñ ß"):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.decode(ids, skip_special_tokens=True) == text
            assert ids[:-1] == vocabulary.encode([text])[0]
            assert ids[-1] == 0
        assert tokenizer(">>zh<< Rain.")["input_ids"][0] == vocabulary.tags["zh"]
        marks = vocabulary.encode(["，。！？；：、“”《》…"])[0]
        assert len(marks) <= 14, "each full-width mark has a piece of its own"

    def test_too_little_text_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(CorpusError, match=r"yields .* pieces at most, not 4,000"):
            train_vocabulary(lambda: ["One line."], 4000, "en", "zh", tmp_path)
        assert not (tmp_path / "source.spm").exists()

    def test_a_size_that_characters_fill_grows_unless_it_was_asked_for(self, tmp_path: Path) -> None:
        texts = [text for pair in SENTENCES for text in pair] * 5
        texts += ["".join(chr(0x4E00 + (i + j) % 2000) for j in range(5)) for i in range(0, 6000, 3)]
        with pytest.raises(CorpusError, match="400 pieces is too small for the text's characters"):
            train_vocabulary(lambda: texts, 400, "en", "zh", tmp_path)
        vocabulary = train_vocabulary(lambda: texts, 400, "en", "zh", tmp_path, grow=True)
        assert vocabulary.size > 4000
        assert len(vocabulary.encode(["一丁"])[0]) <= 3, "characters of the text have pieces"

    def test_a_vocabulary_without_the_language_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="no tag >>fr<<"):
            load_vocabulary(EN_ZH, "en", "fr")
        with pytest.raises(ModelError, match="no vocabulary"):
            load_vocabulary(tmp_path, "en", "zh")


@pytest.fixture(scope="module")
def examples() -> Examples:
    vocabulary = load_vocabulary(EN_ZH, "en", "zh")
    return encode_pairs(SENTENCES * 40, [1.0] * (40 * len(SENTENCES)), vocabulary, 60)


class TestPacking:
    @given(st.lists(st.tuples(st.integers(1, 32), st.integers(1, 32)), max_size=300))
    def test_every_sentence_is_in_one_row_and_no_row_overflows(self, lengths: list[tuple[int, int]]) -> None:
        rows = pack(lengths, 32)
        assert sorted(position for row in rows for position in row) == list(range(len(lengths)))
        for side in (0, 1):
            assert all(sum(lengths[position][side] for position in row) <= 32 for row in rows)

    def test_rows_are_full(self, examples: Examples) -> None:
        batches = list(packed_batches(examples, rows=8, row_tokens=128, seed=1, epoch=0))
        used = sum(batch.tokens for batch in batches) / sum(2 * batch.source.numel() for batch in batches)
        assert used > 0.9

    def test_a_row_unpacks_to_the_pairs_that_went_in(self, examples: Examples) -> None:
        vocabulary = examples.vocabulary
        results = set()
        for batch in packed_batches(examples, rows=4, row_tokens=64, seed=3, epoch=1, keep_last=True):
            for row in range(len(batch.source)):
                for number in range(1, int(batch.source_segment[row].max()) + 1):
                    there = batch.source_segment[row] == number
                    back = batch.target_segment[row] == number
                    words, labels = batch.source[row][there].tolist(), batch.labels[row][back].tolist()
                    inputs = batch.inputs[row][back].tolist()
                    assert inputs == [vocabulary.pad, *labels[:-1]]
                    assert words[-1] == labels[-1] == 0
                    assert batch.source_position[row][there].tolist() == list(range(len(words)))
                    assert batch.target_position[row][back].tolist() == list(range(len(labels)))
                    tag = {number: code for code, number in vocabulary.tags.items()}[words[0]]
                    decode = vocabulary.processor.decode
                    results.add((tag, decode(words[1:-1]), decode(labels[:-1])))
        assert results == {("zh", a, b) for a, b in SENTENCES} | {("en", b, a) for a, b in SENTENCES}

    def test_an_epoch_goes_on_where_it_stopped_and_epochs_differ(self, examples: Examples) -> None:
        def made(epoch: int, skip: int = 0) -> list[np.ndarray]:
            stream = packed_batches(examples, rows=4, row_tokens=64, seed=1, epoch=epoch, skip=skip)
            return [batch.source.numpy() for batch in stream]

        batches, rest = made(0), made(0, skip=2)
        assert len(rest) == len(batches) - 2 > 1
        assert all((a == b).all() for a, b in zip(batches[2:], rest, strict=True))
        assert any((a != b).any() for a, b in zip(batches, made(1), strict=False))

    @given(st.floats(0.1, 3.0))
    def test_a_weight_is_how_often_a_pair_comes(self, weight: float) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        result = encode_pairs(SENTENCES * 100, [weight] * (100 * len(SENTENCES)), vocabulary, 60)
        from engine.builders.bases.packing import order_of_epoch

        mean = np.mean([len(order_of_epoch(result, 1, epoch)) for epoch in range(5)]) / len(result)
        assert abs(mean - weight) < 0.05

    def test_pairs_with_a_long_side_are_left_out_and_counted(self) -> None:
        vocabulary = load_vocabulary(EN_ZH, "en", "zh")
        result = encode_pairs([*SENTENCES, ("word " * 80, "词")], [1.0] * (len(SENTENCES) + 1), vocabulary, 60)
        assert result.too_long == 1
        assert len(result) == 2 * len(SENTENCES)

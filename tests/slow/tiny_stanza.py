"""A small grammar, and tiny real stanza models trained on it: what a test needs where no model can be fetched.

The grammar gives each sentence with its tokens, its constituents and its dependencies, so what a parser finds can be
compared with what is right. Training both languages takes about 15 seconds on one core.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

NOUNS = ["king", "ship", "letter", "child", "garden", "sword", "queen", "window"]
ADJECTIVES = ["old", "small", "golden", "broken"]
VERBS = ["saw", "found", "painted", "wanted"]
PREPOSITIONS = ["near", "behind", "under"]
ZH_SUBJECTS = ["国王", "老人", "孩子", "先生"]
ZH_VERBS = ["看见", "喜欢", "画了", "想要"]
ZH_ADJECTIVES = ["大", "小", "新", "旧"]
ZH_OBJECTS = ["船", "书", "花", "房子"]


@dataclass
class Gold:
    """A sentence of the grammar: rows of (form, tag, head, relation), its bracketed tree, and its phrases."""

    rows: list[tuple[str, str, int, str]]
    tree: str
    text: str
    constituents: set[str]
    subtrees: set[str]


def english(rng: random.Random) -> Gold:
    rows: list[tuple[str, str, int, str]] = []

    def noun_phrase(head: int, relation: str, preposition: str = "") -> tuple[str, str]:
        words = [(preposition, "ADP", "case")] if preposition else []
        words.append((rng.choice(["the", "a"]), "DET", "det"))
        if rng.random() < 0.5:
            words.append((rng.choice(ADJECTIVES), "ADJ", "amod"))
        noun = len(rows) + len(words) + 1
        rows.extend((form, tag, noun, role) for form, tag, role in words)
        rows.append((rng.choice(NOUNS), "NOUN", head, relation))
        used = [*words, (rows[-1][0], "NOUN", "")]
        inner = " ".join(f"({tag} {form})" for form, tag, _ in used[bool(preposition) :])
        brackets = f"(NP {inner})"
        text = " ".join(form for form, _, _ in used)
        return (f"(PP (ADP {preposition}) {brackets})" if preposition else brackets), text

    begin, subject = noun_phrase(0, "nsubj")
    verb = len(rows) + 1
    rows[verb - 2] = (*rows[verb - 2][:2], verb, "nsubj")
    rows.append((rng.choice(VERBS), "VERB", 0, "root"))
    tree, thing = noun_phrase(verb, "obj")
    inside = f"(VERB {rows[verb - 1][0]}) {tree}"
    note = f"{rows[verb - 1][0]} {thing}"
    constituents, subtrees = {subject, thing}, {subject, thing}
    if rng.random() < 0.6:
        tree, position = noun_phrase(verb, "obl", rng.choice(PREPOSITIONS))
        inside, note = f"{inside} {tree}", f"{note} {position}"
        constituents |= {position, position.split(" ", 1)[1]}
        subtrees.add(position)
    rows.append((".", "PUNCT", verb, "punct"))
    sentence = f"{subject} {note}"
    return Gold(
        rows, f"(ROOT (S {begin} (VP {inside}) (PUNCT .)))", f"{sentence}.", constituents | {note, sentence}, subtrees | {sentence}
    )


def chinese(rng: random.Random) -> Gold:
    subject, verb, thing = rng.choice(ZH_SUBJECTS), rng.choice(ZH_VERBS), rng.choice(ZH_OBJECTS)
    rows = [(subject, "NOUN", 2, "nsubj"), (verb, "VERB", 0, "root")]
    adjective = rng.choice(ZH_ADJECTIVES) if rng.random() < 0.7 else ""
    if adjective:
        rows.append((adjective, "ADJ", 4, "amod"))
    rows += [(thing, "NOUN", 2, "obj"), ("。", "PUNCT", 2, "punct")]
    text = "".join(row[0] for row in rows)
    return Gold(rows, "", text, set(), {subject, adjective + thing, text[:-1]})


def write_conllu(golds: list[Gold], path: Path, spaced: bool) -> None:
    blocks = []
    for gold in golds:
        lines = [f"# text = {gold.text}"]
        for index, (form, tag, head, relation) in enumerate(gold.rows, 1):
            glued = not spaced or index >= len(gold.rows) - 1
            misc = "SpaceAfter=No" if glued else "_"
            lines.append("\t".join([str(index), form, form, tag, tag, "_", str(head), relation, "_", misc]))
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")


def write_characters(golds: list[Gold], folder: Path) -> None:
    """Text and one digit a character: 1 ends a word, 2 a sentence."""
    labels = []
    for gold in golds:
        marks, position = ["0"] * len(gold.text), 0
        for form, *_ in gold.rows:
            position = gold.text.index(form, position) + len(form)
            marks[position - 1] = "1"
        marks[-1] = "2"
        labels.append("".join(marks))
    (folder / "text.txt").write_text("\n\n".join(gold.text for gold in golds) + "\n\n", encoding="utf-8")
    (folder / "text.labels").write_text("\n\n".join(labels) + "\n\n", encoding="utf-8")
    (folder / "mwt.json").write_text("[]", encoding="utf-8")


def train(golds: list[Gold], language: str, work: Path, models: Path, spaced: bool) -> None:
    """Tokenizer, tagger and dependency parser by stanza's own trainers, a few dozen updates each."""
    import torch
    from stanza.models import parser, tagger, tokenizer
    from stanza.models.common.pretrain import Pretrain

    work.mkdir()
    write_conllu(golds, work / "train.conllu", spaced)
    write_conllu(golds[:5], work / "dev.conllu", spaced)
    write_characters(golds, work)
    target = models / language
    shared = ["--mode", "train", "--lang", language, "--shorthand", f"{language}_tiny", "--cpu", "--save_name", "tiny.pt"]
    text = ["--txt_file", str(work / "text.txt"), "--label_file", str(work / "text.labels")]
    text += ["--dev_txt_file", str(work / "text.txt"), "--dev_label_file", str(work / "text.labels")]
    text += ["--dev_conll_gold", str(work / "dev.conllu"), "--mwt_json_file", str(work / "mwt.json"), "--no_use_mwt"]
    sizes = ["--emb_dim", "16", "--hidden_dim", "32", "--batch_size", "16", "--dropout", "0", "--unit_dropout", "0"]
    steps = ["--steps", "120", "--eval_steps", "1000", "--lr0", "0.01"]
    tokenizer.main([*shared, *text, *sizes, *steps, "--save_dir", str(target / "tokenize")])
    words = sorted({row[0] for gold in golds for row in gold.rows})
    generator = torch.Generator().manual_seed(1)
    rows = [" ".join([word, *(f"{x:.3f}" for x in torch.randn(8, generator=generator).tolist())]) for word in words]
    (work / "vectors.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    vectors = target / "pretrain" / "tiny.pt"
    Pretrain(str(vectors), str(work / "vectors.txt")).load()
    trees = ["--train_file", str(work / "train.conllu"), "--eval_file", str(work / "dev.conllu")]
    trees += ["--wordvec_pretrain_file", str(vectors), "--max_steps", "60", "--eval_interval", "60", "--log_step", "1000"]
    trees += ["--batch_size", "300", "--no_char", "--hidden_dim", "32", "--deep_biaff_hidden_dim", "24", "--num_layers", "1"]
    trees += [
        "--transformed_dim",
        "16",
        "--word_emb_dim",
        "16",
        "--tag_emb_dim",
        "8",
        "--lr",
        "0.01",
        "--dropout",
        "0",
        "--word_dropout",
        "0",
    ]
    tagger.main([*shared, *trees, "--composite_deep_biaff_hidden_dim", "16", "--save_dir", str(target / "pos")])
    parser.main(
        [*shared, *trees, "--optim", "adam", "--no_second_optim", "--no_checkpoint", "--save_dir", str(target / "depparse")]
    )


def train_constituency(golds: list[Gold], models: Path) -> None:
    """stanza's constituency trainer without its scorer, which needs Java."""
    import torch
    from stanza.models import constituency_parser
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.constituency import parser_training, tree_reader

    folder = models / "en" / "constituency"
    folder.mkdir(parents=True)
    sizes = ["--hidden_size", "32", "--delta_embedding_dim", "16", "--tag_embedding_dim", "8", "--num_lstm_layers", "1"]
    sizes += ["--transition_embedding_dim", "8", "--transition_hidden_size", "8", "--lattn_d_proj", "0"]
    args = ["--wordvec_pretrain_file", str(models / "en" / "pretrain" / "tiny.pt"), "--shorthand", "en_tiny", "--cpu"]
    options = constituency_parser.parse_args([*args, *sizes, "--save_dir", str(folder), "--no_checkpoint"])
    options["wandb"] = None
    trees = tree_reader.read_trees("\n".join(gold.tree for gold in golds))
    trainer, sequences, _, _ = parser_training.build_trainer(options, trees, trees[:5], [], FoundationCache(), None)
    trainer.train()
    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    tensors = {name: torch.tensor(index).unsqueeze(0) for index, name in enumerate(trainer.transitions)}
    data = parser_training.compose_train_data(trees, sequences)
    for epoch in range(1, 20):
        parser_training.train_model_one_epoch(epoch, trainer, tensors, lambda x: x, loss, data, None, options)
    trainer.save(str(folder / "tiny.pt"), save_optimizer=False)


def resources(models: Path) -> dict[str, object]:
    """stanza's list of what is in the folder, with checksums, as its server would give it."""
    listed: dict[str, object] = {"zh": {"alias": "zh-hans"}}
    for folder in sorted(path for path in models.iterdir() if path.is_dir()):
        entry: dict[str, object] = {"lang_name": folder.name}
        for file in sorted(folder.glob("*/tiny.pt")):
            needs = [{"model": "pretrain", "package": "tiny"}]
            details: dict[str, object] = {"md5": hashlib.md5(file.read_bytes()).hexdigest()}
            if file.parent.name in ("pos", "depparse", "constituency"):
                details["dependencies"] = needs
            entry[file.parent.name] = {"tiny": details}
        entry["packages"] = {"default": {name: "tiny" for name in ("tokenize", "pos", "depparse") if name in entry}}
        listed[folder.name] = entry
    return listed

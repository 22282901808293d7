"""What users get wrong: each ends in one sentence that says what, where and what to do, with exit code 2 and no debris."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bases import copy_base, make_base
from tests.conftest import SAMPLES, SHORT, Ran

Run = Callable[..., Ran]


@pytest.fixture
def customize(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs the main job with something wrong; returns the sentence, having looked for debris."""

    def run(**wrong: Any) -> str:
        arguments = {"base": tiny, "source": "en", "target": "zh", "samples": sample, "output": tmp_path / "out" / "p.zip"}
        arguments |= wrong
        flags = [part for key, value in arguments.items() for part in (f"--{key}", value)]
        before = {file for file in tmp_path.rglob("*") if (tmp_path / "home") not in file.parents}
        ran = tailormt("customize", *flags, "--budget", "quick", *SHORT)
        after = {file for file in tmp_path.rglob("*") if (tmp_path / "home") not in file.parents}
        assert after - before <= {tmp_path / "home"}, "something was left behind"
        assert not [file for file in tmp_path.rglob("*") if file.name.endswith(".tmp")]
        assert ran.out == ""
        return ran.sentence

    return run


# -- samples


def text_file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


ENGLISH = (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_bytes()
BAD_SAMPLES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\t\n", "no sentences|no usable sentence"),
    "binary": (random.Random(0).randbytes(64) + bytes(range(256)) * 40, "binary data|not text|encoding"),
    "pdf": (b"%PDF-1.7\n" + bytes(200), "a PDF document"),
    "undecodable": (b"\x81\x8d\x8f\x90\x9d\xa0\xff\xfe\xfd" * 200, "encoding|binary data|no usable sentence"),
    "wrong language": (ENGLISH, "not in the target language.*English"),
    "too few": ("雨停了。\n他什么也不曾说。\n".encode(), "Only 2 of .*at least 20"),
    "one 5 MB line": ("雨停了，".encode() * 420_000, "no usable sentence.*too long"),
}


@pytest.mark.parametrize("name", BAD_SAMPLES)
def test_samples(customize: Callable[..., str], tmp_path: Path, name: str) -> None:
    import re

    data, match = BAD_SAMPLES[name]
    file = text_file(tmp_path / "bad.txt", data)
    sentence = customize(samples=file)
    assert re.search(match, sentence), sentence
    assert "bad.txt" in sentence or name == "too few"


def test_samples_that_are_not_there(customize: Callable[..., str], tmp_path: Path) -> None:
    assert "does not exist" in customize(samples=tmp_path / "none.txt")
    assert "is a folder" in customize(samples=tmp_path)


def test_twenty_sentences_are_enough(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("\n".join(sample.read_text(encoding="utf-8").splitlines()[:22]), encoding="utf-8")
    line = ("customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", few, "--budget", "quick")
    ran = tailormt(*line, *SHORT, "-o", tmp_path / "p.zip")
    assert ran.code == 0, ran.err


# -- bases


@pytest.fixture(scope="session")
def bad_bases(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """Folders that are no usable base, each with what must be said of it."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import BertConfig, BertModel, T5Config, T5ForConditionalGeneration

    root = tmp_path_factory.mktemp("bad-bases")
    result: dict[str, tuple[Path, str]] = {"none": (root / "none", "There is no folder")}
    (root / "empty").mkdir()
    result["not a model"] = (root / "empty", "not a model folder: it has no config.json")
    (root / "file").write_text("x", encoding="utf-8")
    result["a file"] = (root / "file", "is a file, not a model folder")
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
    BertModel(BertConfig(**small)).save_pretrained(root / "bert")
    result["encoder only"] = (root / "bert", "bert model, which is not sequence-to-sequence")
    t5 = T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0)
    T5ForConditionalGeneration(t5).save_pretrained(root / "t5")
    result["unknown layout"] = (root / "t5", "t5 model.*self_attn and encoder_attn")
    # a tokenizer of more words, and one of fewer
    for name, vocabulary, match in (("larger", 800, "do not belong together"), ("smaller", 650, "do not belong together")):
        other = make_base(root / f"of-{name}", vocabulary=vocabulary, updates=0)
        mixed = copy_base(tiny, root / name)
        for file in ("vocab.json", "source.spm", "target.spm", "tokenizer_config.json"):
            shutil.copyfile(other / file, mixed / file)
        result[f"{name} tokenizer"] = (mixed, match)
    pickled = copy_base(tiny, root / "pickled")
    torch.save(load_file(pickled / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    result["pickled"] = (pickled, "only pickled weights")
    bare = copy_base(tiny, root / "bare")
    (bare / "model.safetensors").unlink()
    result["no weights"] = (bare, "has no weights")
    for name, text in (("broken json", "{"), ("list", "[]"), ("no type", "{}")):
        folder = copy_base(tiny, root / name.replace(" ", "-"))
        (folder / "config.json").write_text(text, encoding="utf-8")
        result[name] = (folder, "not valid JSON|not a JSON object|names no model_type")
    cut = copy_base(tiny, root / "cut")
    (cut / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes()[:5000])
    result["cut weights"] = (cut, "cannot be loaded")
    lost = copy_base(tiny, root / "lost")
    tensors = load_file(lost / "model.safetensors")
    del tensors["model.decoder.layers.0.fc1.weight"]
    save_file(tensors, lost / "model.safetensors", metadata={"format": "pt"})
    result["missing weights"] = (lost, "lacks 1 weights")
    for file in ("vocab.json", "source.spm"):
        folder = copy_base(tiny, root / file.replace(".", "-"))
        (folder / file).unlink()
        result[f"no {file}"] = (folder, f"has no {file}")
    return result


BAD_BASES = (
    "none", "not a model", "a file", "encoder only", "unknown layout", "larger tokenizer", "smaller tokenizer", "pickled",
    "no weights", "broken json", "list", "no type", "cut weights", "missing weights", "no vocab.json", "no source.spm",
)  # fmt: skip


@pytest.mark.parametrize("name", BAD_BASES)
def test_bases(customize: Callable[..., str], bad_bases: dict[str, tuple[Path, str]], name: str) -> None:
    import re

    folder, match = bad_bases[name]
    sentence = customize(base=folder)
    assert re.search(match, sentence), sentence
    assert folder.name in sentence


def test_languages(customize: Callable[..., str]) -> None:
    assert "does not support the language" in customize(source="fr")
    assert "choose two different languages" in customize(source="zh").lower()


# -- bundles and outputs


def test_a_spoilt_bundle(tailormt: Run, tiny: Path, bundle: Path, tmp_path: Path) -> None:
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 4
    spoilt = text_file(tmp_path / "spoilt.zip", bytes(data))
    source = text_file(tmp_path / "in.txt", b"The rain stopped.\n")
    line = ("translate", "--base", tiny, "--source", "en", "--target", "zh", "--plugin", spoilt, source)
    ran = tailormt(*line, "-o", tmp_path / "out.txt")
    assert "Get a new copy of the bundle" in ran.sentence
    assert not (tmp_path / "out.txt").exists()
    assert not list((tmp_path / "home" / "unpacked").iterdir())


def test_outputs_that_cannot_be_written(customize: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert "is a file, not a folder" in customize(output=tmp_path / "file" / "p.zip")
    assert "is a folder" in customize(output=tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(customize: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "no permission" in customize(output=tmp_path / "locked" / "p.zip")


def test_inputs_to_translate(tailormt: Run, tiny: Path, tmp_path: Path) -> None:
    line = ("translate", "--base", tiny, "--source", "en", "--target", "zh")
    assert "is empty" in tailormt(*line, text_file(tmp_path / "a.txt", b"")).sentence
    assert "does not exist" in tailormt(*line, tmp_path / "none.txt").sentence
    nearly = "The rain stopped — on the “old” road.\n".encode() * 40 + b"broken \xff here\n"
    assert "line 41" in tailormt(*line, text_file(tmp_path / "b.txt", nearly)).sentence
    fine = text_file(tmp_path / "c.txt", b"The rain stopped.\n")
    assert "strength" in tailormt(*line, fine, "--beam", "0").sentence.replace("beam: 0 is below", "strength")
    assert "beam" in tailormt(*line, fine, "--beam", "0").sentence


def test_a_translation_never_takes_the_place_of_what_it_is_of(tailormt: Run, tiny: Path, tmp_path: Path) -> None:
    line = ("translate", "--base", tiny, "--source", "en", "--target", "zh")
    file = text_file(tmp_path / "c.txt", b"The rain stopped.\n")
    (tmp_path / "link.txt").symlink_to(file)
    for output in (file, tmp_path / "link.txt"):
        assert "cannot be its output" in tailormt(*line, file, "-o", output).sentence
    assert file.read_bytes() == b"The rain stopped.\n"
    assert "--strength needs --plugin" in tailormt(*line, file, "--strength", "0.5").sentence


def test_samples_are_never_written_over(customize: Callable[..., str], sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "samples.txt"
    copy.write_bytes(sample.read_bytes())
    assert "cannot be its output" in customize(samples=copy, output=copy)
    assert copy.read_bytes() == sample.read_bytes()


def test_paths_that_cannot_be_are_the_users_to_put_right(tailormt: Run, tmp_path: Path) -> None:
    """One sentence and exit code 2, whatever command meets them: no fault of the program."""
    file, long = text_file(tmp_path / "a.txt", b"Rain.\n"), tmp_path / ("x" * 300)
    for line in (
        ("translate", "--source", "en", "--target", "zh", long),
        ("evaluate", long, "--reference", file, "--target", "zh"),
        ("evaluate", file, "--reference", file, "--target", "zh", "-o", "/proc/x.json"),
        ("plugin", "verify", long), ("plugin", "verify", tmp_path), ("backup", long),
        ("jobs", "list", "--home", file), ("jobs", "list", "--home", "/proc/x"),
        ("corpus", "import", "--source", "en", "--target", "zh", file, "--workspace", file),
    ):  # fmt: skip
        ran = tailormt(*line)
        assert ran.code == 2, ran
        assert "inside Tailor MT" not in ran.sentence, ran


def test_bytes_that_are_no_text(tailormt: Run, tmp_path: Path) -> None:
    cut = text_file(tmp_path / "cut.txt", b"\xff\xfe\x00\x01binary\x00")
    fine = text_file(tmp_path / "fine.txt", b"Rain.\n")
    for line in (
        ("evaluate", f"a={cut}", "--reference", fine, "--target", "zh"),
        ("evaluate", f"a={fine}", "--reference", cut, "--target", "zh"),
        ("translate", "--source", "en", "--target", "zh", fine, "--terms", cut),
    ):
        ran = tailormt(*line)
        assert ran.code == 2, ran
        assert "cut.txt" in ran.sentence
    twice = tailormt("evaluate", f"a={fine}", f"a={fine}", "--reference", fine, "--target", "zh")
    assert "a name of its own" in twice.sentence


@pytest.mark.parametrize(
    ("flags", "match"),
    [
        (("--method", "memory_adaptor"), "Did you mean memory_adapter?"),
        (("--method-option", "temprature=1"), "Did you mean temperature?"),
        (("--training-option", "max_update=1"), "Did you mean max_updates?"),
        (("--phrase-option", "lmax=1"), "Did you mean l_max?"),
        (("--training-option", "max_updates"), "write it as name=value"),
        (("--threads", "many"), "threads: 'many' is not a whole number."),
        (("--method-option", "layers=9"), "has 2 decoder layers, numbered from 0 to 1"),
    ],
)
def test_options(tailormt: Run, tiny: Path, sample: Path, tmp_path: Path, flags: tuple[str, ...], match: str) -> None:
    line = ("customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--budget", "quick")
    ran = tailormt(*line, *SHORT, *flags, "-o", tmp_path / "p.zip")
    assert match in ran.sentence
    assert not (tmp_path / "p.zip").exists()


# -- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two MiB, where this machine lets one be made."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    ).returncode  # fmt: skip
    if not mounted:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_while_checkpointing(
    tailormt: Run, tiny: Path, sample: Path, tmp_path: Path, small_disk: Path, request_for: Callable[..., Any]
) -> None:
    work, output = small_disk / "work", tmp_path / "p.zip"
    line = ("customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--budget", "quick")
    job = (*line, *SHORT, "--workspace", work, "-o", output)
    assert tailormt("memory", *job[1:-2]).code == 0
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        file.write(bytes(free - 120_000))  # room for pairs and the log, not for a checkpoint
    sentence = tailormt(*job).sentence
    assert "The disk is full" in sentence
    assert str(work) in sentence
    assert not output.exists()
    assert not list(work.rglob("checkpoint.tmp"))
    filler.unlink()
    assert tailormt(*job).code == 0, "with some space it goes on"
    assert output.exists()


def test_a_full_disk_keeps_the_checkpoint_before(
    tailormt: Run, tiny: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch

    work = tmp_path / "work"
    line = ("customize", "--base", tiny, "--source", "en", "--target", "zh", "--samples", sample, "--budget", "quick")
    job = (*line, *SHORT, "--workspace", work, "-o", tmp_path / "p.zip")
    real, written = safetensors.torch.save_file, []

    def full(tensors: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        if "checkpoint" in str(file):
            written.append(file)
            if len(written) > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
        real(tensors, file, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", full)
        assert "The disk is full: the checkpoint" in tailormt(*job).sentence
    state = json.loads((work / "training" / "checkpoint" / "state.json").read_text(encoding="utf-8"))
    assert state["position"]["update"] == 2
    assert tailormt(*job).code == 0
    rows = [json.loads(row) for row in (work / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum("valid_loss" in row and row["step"] == 2 for row in rows) == 1, "it went on, it did not start again"

"""Bundles: what was written comes back, and nothing that came from a stranger is believed."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load, save

from engine.base import BaseModel
from engine.decoding.translate import translate
from engine.errors import BundleError, OptionError
from engine.plugins import Plugin, PluginStack, read_bundle_card, unpack_bundle, verify_bundle
from engine.plugins.repack import repack
from tests.bases import SENTENCES
from tests.properties import few

CONFIG, WEIGHTS, MEMORY, MANIFEST = ("adapter_config.json", "adapter_model.safetensors", "memory.safetensors", "manifest.json")
SOURCES = [source for source, _ in SENTENCES]


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def write(path: Path, files: dict[str, bytes], manifest: bool = True) -> Path:
    """A bundle of these files, with a manifest that fits them."""
    if manifest:
        entries = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in files.items()
            if name != MANIFEST
        }
        files = {**files, MANIFEST: json.dumps({"files": entries}).encode()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in files.items():
            bundle.writestr(name, data)
    return path


def with_config(bundle: Path, path: Path, **changes: Any) -> Path:
    files = contents(bundle)
    config = json.loads(files[CONFIG])
    for key, value in changes.items():
        if value is ...:
            del config[key]
        else:
            config[key] = value
    return write(path, {**files, CONFIG: json.dumps(config).encode()})


def with_tensors(bundle: Path, path: Path, name: str, change: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    files = contents(bundle)
    tensors = load(files[name])
    change(tensors)
    return write(path, {**files, name: save(tensors)})


def refused(path: Path, base: BaseModel, cache: Path, match: str) -> str:
    """The sentence with which the bundle is refused; nothing of it may be left in the cache."""
    before = sorted(cache.rglob("*")) if cache.exists() else []
    with pytest.raises(BundleError, match=match) as caught:
        Plugin.load(path, base, cache=cache)
    text = str(caught.value)
    assert text.endswith((".", "?"))
    assert "\n" not in text
    left = sorted(cache.rglob("*")) if cache.exists() else []
    assert not [file for file in left if file.name.startswith(".")], "half-unpacked files were left behind"
    folders = {folder for folder in left if folder.parent == cache}
    assert all((folder / MANIFEST).exists() or (folder / CONFIG).exists() for folder in folders)
    assert not before or set(before) <= set(left)
    return text


# -- what is written comes back


def test_round_trip(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    plugin = Plugin.load(bundle, base, cache=tmp_path)
    assert plugin.name == "Style"
    assert (plugin.card["source"], plugin.card["target"], plugin.card["format_version"]) == ("en", "zh", 3)
    assert plugin.card["base_fingerprint"] == base.fingerprint()
    stored = plugin.method.unpacked(plugin.module, load(contents(bundle)[WEIGHTS]))
    held = plugin.module.state_dict()
    assert stored.keys() == held.keys()
    assert all(torch.equal(stored[key], held[key]) for key in stored)
    before = translate(base, SOURCES)
    customized = translate(base, SOURCES, plugin)
    assert customized != before, "the plugin does something"
    assert customized == translate(base, SOURCES, Plugin.load(bundle, base, cache=tmp_path))
    assert translate(base, SOURCES, plugin, strength=0.0) == before
    assert translate(base, SOURCES) == before


def test_a_bundle_holds_exactly_its_files_and_keys(bundle: Path) -> None:
    files = contents(bundle)
    assert set(files) == {CONFIG, WEIGHTS, MEMORY, MANIFEST, "README.md", "phrases.jsonl"}
    assert set(json.loads(files[CONFIG])) == {
        "base_fingerprint", "base_model_name_or_path", "config", "decoding", "format_version", "inference_mode", "method",
        "metrics", "name", "peft_type", "provenance", "revision", "source", "tailormt_version", "target", "task_type",
    }  # fmt: skip
    listed = json.loads(files[MANIFEST])["files"]
    assert set(listed) == set(files) - {MANIFEST}
    for name, entry in listed.items():
        assert entry == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}


def test_the_card_names_preset_settings_unlike_the_paper_and_how_training_ended(bundle: Path) -> None:
    card = contents(bundle)["README.md"].decode("utf-8")
    assert "| budget | quick |" in card
    unlike = "| unlike the paper | alpha = 0, beta = 0, phrases_per_layer = 40, label_smoothing = 0.1, base_dropout = none, "
    assert f"{unlike}fine_tune = auto, fine_tune_speed = 0.4 |" in card
    assert "| training | all 4 updates |" in card


def test_a_bundle_names_no_folder_of_this_machine(bundle: Path, tiny: Path, sample: Path) -> None:
    for data in contents(bundle).values():
        for folder in (tiny.parent, sample.parent, bundle.parent):
            assert str(folder).encode() not in data


def test_card_and_verification(bundle: Path) -> None:
    card = verify_bundle(bundle)
    assert card == read_bundle_card(bundle)
    assert card["bytes"] == bundle.stat().st_size
    assert MEMORY in card["files"]


def test_unpacked_twice_is_the_same_folder(bundle: Path, tmp_path: Path) -> None:
    first = unpack_bundle(bundle, tmp_path)
    times = {file: file.stat().st_mtime_ns for file in first.iterdir()}
    assert unpack_bundle(bundle, tmp_path) == first
    assert {file: file.stat().st_mtime_ns for file in first.iterdir()} == times, "nothing was unpacked again"
    assert list(tmp_path.iterdir()) == [first]
    (first / MEMORY).unlink()
    assert unpack_bundle(bundle, tmp_path) == first, "what is lost is unpacked again"
    assert (first / MEMORY).exists()


def test_phrases_may_be_left_out(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    copy, again = tmp_path / "copy.zip", tmp_path / "again.zip"
    repack(bundle, copy, with_phrases=False)
    assert "phrases.jsonl" not in contents(copy)
    assert b"| phrases | left out |" in contents(copy)["README.md"]
    phrases = [json.loads(line)["target"] for line in contents(bundle)["phrases.jsonl"].decode().splitlines()]
    for phrase in {p for p in phrases if len(p) > 3}:
        assert all(phrase.encode() not in data for data in contents(copy).values())
    with_phrases, without = (Plugin.load(p, base, cache=tmp_path / "cache") for p in (bundle, copy))
    assert translate(base, SOURCES, with_phrases) == translate(base, SOURCES, without)
    assert all(item["text"] for row in with_phrases.attributions(base, SOURCES[0], "雨停了。") for item in row["items"])
    reads = without.attributions(base, SOURCES[0], "雨停了。")
    assert reads
    assert {item["text"] for row in reads for item in row["items"]} == {""}
    repack(bundle, again)
    assert contents(again) == contents(bundle)


def test_repacking_a_damaged_bundle_writes_nothing(bundle: Path, tmp_path: Path) -> None:
    data = bytearray(bundle.read_bytes())
    data[len(data) // 2] ^= 1
    spoilt = tmp_path / "spoilt.zip"
    spoilt.write_bytes(data)
    with pytest.raises(BundleError):
        repack(spoilt, tmp_path / "out" / "copy.zip")
    assert not (tmp_path / "out").exists()


def test_plugins_in_one_call(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    plugin = Plugin.load(bundle, base, cache=tmp_path)
    assert translate(base, SOURCES, PluginStack([plugin])) == translate(base, SOURCES, plugin)
    stack = PluginStack([plugin, Plugin.load(bundle, base, cache=tmp_path)])
    assert translate(base, SOURCES, stack, strength=0.0) == translate(base, SOURCES)
    for strength in (-0.1, 2.1, float("nan")):
        with pytest.raises(OptionError, match="strength"):
            translate(base, SOURCES, plugin, strength=strength)


# -- one changed byte


def altered(bundle: Path, path: Path, position: int, flip: int) -> None:
    """The bundle with one byte changed is refused in a sentence, or holds what it held."""
    data = bytearray(bundle.read_bytes())
    data[position] ^= flip
    path.write_bytes(data)
    text = ""
    try:
        folder = unpack_bundle(path, path.parent / "cache")
    except BundleError as error:
        text = str(error)
    if text:
        assert str(path) in text
        assert "\n" not in text
        return
    for name, content in contents(bundle).items():
        if name != MANIFEST:
            assert (folder / name).read_bytes() == content


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_harmless(bundle: Path, tmp_path: Path, share: float, flip: int) -> None:
    altered(bundle, tmp_path / "changed.zip", int(share * bundle.stat().st_size), flip)


@given(st.integers(1, 700), st.integers(1, 255))
def test_a_changed_byte_of_the_directory_is_refused_or_harmless(bundle: Path, tmp_path: Path, from_end: int, flip: int) -> None:
    altered(bundle, tmp_path / "changed.zip", bundle.stat().st_size - from_end, flip)


@few
@given(st.floats(0, 1, exclude_max=True))
def test_a_bundle_cut_short_is_refused(bundle: Path, tmp_path: Path, part: float) -> None:
    path = tmp_path / "short.zip"
    path.write_bytes(bundle.read_bytes()[: int(part * bundle.stat().st_size)])
    with pytest.raises(BundleError):
        unpack_bundle(path, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@given(st.binary(max_size=300))
def test_any_bytes_are_no_bundle(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.zip"
    path.write_bytes(data)
    with pytest.raises(BundleError, match=r"is not a plugin bundle: it cannot be read as a zip file\.$"):
        verify_bundle(path)


# -- what a stranger could put in


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../evil.txt", "leads out of the bundle"),
        ("a/../../evil.txt", "leads out of the bundle"),
        ("..\\evil.txt", "leads out of the bundle"),
        ("/etc/evil", "leads out of the bundle"),
        ("C:evil.txt", "leads out of the bundle"),
        ("\\\\server\\evil", "leads out of the bundle"),
        ("evil.pkl", "does not belong in a plugin"),
        ("pytorch_model.bin", "does not belong in a plugin"),
        ("sub/adapter_config.json", "does not belong in a plugin"),
        ("sub/", "does not belong in a plugin"),
    ],
)
def test_odd_names_are_refused(bundle: Path, base: BaseModel, tmp_path: Path, name: str, match: str) -> None:
    path = write(tmp_path / "odd.zip", {**contents(bundle), name: b"x"})
    refused(path, base, tmp_path / "cache", match)
    assert {file.name for file in tmp_path.iterdir()} == {"odd.zip"}


def test_a_name_that_stands_twice_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    path = write(tmp_path / "twice.zip", contents(bundle))
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as odd:
        warnings.simplefilter("ignore")
        odd.writestr(CONFIG, "{}")
    refused(path, base, tmp_path / "cache", "twice")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, MANIFEST, "README.md"])
def test_a_missing_file_is_named(bundle: Path, base: BaseModel, tmp_path: Path, name: str) -> None:
    files = contents(bundle)
    del files[name]
    path = write(tmp_path / "less.zip", files, manifest=name != MANIFEST)
    refused(path, base, tmp_path / "cache", f"has no {name}")


def test_a_missing_memory_is_named(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    files = contents(bundle)
    del files[MEMORY]
    refused(write(tmp_path / "less.zip", files), base, tmp_path / "cache", f"has no {MEMORY}")


def test_an_honest_zip_bomb_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    bomb = write(tmp_path / "bomb.zip", {**contents(bundle), "phrases.jsonl": bytes(64 << 20)})
    assert bomb.stat().st_size < 1 << 20
    refused(bomb, base, tmp_path / "cache", "to 67,108,864 bytes")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", [CONFIG, MANIFEST, "phrases.jsonl"])
def test_a_zip_bomb_that_lies_is_not_unpacked(bundle: Path, base: BaseModel, tmp_path: Path, name: str) -> None:
    import tracemalloc

    path = write(tmp_path / "bomb.zip", {**contents(bundle), name: bytes(64 << 20)}, manifest=name != MANIFEST)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as bomb:
        header = bomb.getinfo(name).header_offset
    struct.pack_into("<I", data, header + 22, 1000)  # the size in the file's own header
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    struct.pack_into("<I", data, entry + 24, 1000)  # and in the directory
    path.write_bytes(data)
    tracemalloc.start()
    refused(path, base, tmp_path / "cache", "damaged|differ|not what its manifest says")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20, "the bomb was unpacked in memory"


def test_an_unusual_packing_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as odd:
        for name, data in contents(bundle).items():
            odd.writestr(name, data)
    refused(path, base, tmp_path / "cache", "uses a compression")


@pytest.mark.parametrize(
    "change",
    [
        lambda files: {"files": {**files, "README.md": "x"}},
        lambda files: {"files": {name: entry for name, entry in files.items() if name != WEIGHTS}},
        lambda files: {"files": {**files, "index.faiss": {"sha256": "", "bytes": 0}}},
        lambda files: {"files": {**files, WEIGHTS: {**files[WEIGHTS], "bytes": 1}}},
        lambda files: {"files": list(files)},
        lambda files: [],
    ],
)
def test_a_manifest_that_does_not_fit(bundle: Path, base: BaseModel, tmp_path: Path, change: Any) -> None:
    files = contents(bundle)
    files[MANIFEST] = json.dumps(change(json.loads(files[MANIFEST])["files"])).encode()
    refused(write(tmp_path / "odd.zip", files, manifest=False), base, tmp_path / "cache", "manifest|JSON object")


def test_a_card_with_half_of_a_surrogate_pair_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    files = {**contents(bundle), CONFIG: contents(bundle)[CONFIG].replace(b'"Style"', b'"St\\ud800yle"')}
    refused(write(tmp_path / "half.zip", files), base, tmp_path / "cache", "damaged")
    with pytest.raises(BundleError, match="damaged"):
        verify_bundle(tmp_path / "half.zip")


def test_deep_json_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    files = {**contents(bundle), CONFIG: b"[" * 100_000 + b"]" * 100_000}
    refused(write(tmp_path / "deep.zip", files), base, tmp_path / "cache", "would unpack|damaged|not a JSON object")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"format_version": 4}, "format 4.*Update"),
        ({"format_version": "1"}, "no format_version"),
        ({"format_version": ...}, "no format_version"),
        ({"method": ...}, "lacks method"),
        ({"config": []}, "config in"),
        ({"decoding": "beam"}, "decoding in"),
        ({"name": 3}, "name in"),
        ({"method": "memory_adaptor"}, "cannot be used.*Did you mean memory_adapter"),
        ({"config": {"temperatur": 1}}, "Did you mean temperature"),
        ({"config": {"temperature": -1}}, "below the smallest"),
        ({"config": {"layers": [7]}}, "lacks layer.7.target|do not fit"),
        ({"source": "zh", "target": "en"}, "translates from Chinese to English, not from English to Chinese"),
    ],
)
def test_a_config_that_does_not_fit(bundle: Path, base: BaseModel, tmp_path: Path, changes: Any, match: str) -> None:
    refused(with_config(bundle, tmp_path / "odd.zip", **changes), base, tmp_path / "cache", match)


def test_a_plugin_of_another_base_names_both(bundle: Path, tmp_path: Path) -> None:
    from tests.bases import make_base

    other = BaseModel.load(make_base(tmp_path / "other-base", updates=0, seed=2), "en", "zh", device="cpu")
    text = refused(bundle, other, tmp_path / "cache", "was made for the base")
    assert "tiny-en-zh" in text
    assert "other-base" in text


def test_a_plugin_of_the_other_direction(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    refused(bundle, base.for_direction("zh", "en"), tmp_path / "cache", "from English to Chinese, not from Chinese to English")


@pytest.mark.parametrize("name", [WEIGHTS, MEMORY])
def test_keys_and_shapes_must_be_exact(bundle: Path, base: BaseModel, tmp_path: Path, name: str) -> None:
    first = sorted(load(contents(bundle)[name]))[-1]
    cache = tmp_path / "cache"
    less = with_tensors(bundle, tmp_path / "less.zip", name, lambda t: t.pop(first))
    refused(less, base, cache, f"lacks the key {first.removesuffix('.exponents').removesuffix('.change')}")
    more = with_tensors(bundle, tmp_path / "more.zip", name, lambda t: t.update(evil=torch.zeros(1)))
    refused(more, base, cache, "has an unknown key evil")
    key = next(key for key, tensor in load(contents(bundle)[name]).items() if tensor.dim() == 2)
    wide = with_tensors(bundle, tmp_path / "wide.zip", name, lambda t: t.update({key: t[key][:, :5].contiguous()}))
    refused(wide, base, cache, rf"{key.removesuffix('.change')}.* has the shape \(\d+, 5\)")
    flat = with_tensors(bundle, tmp_path / "flat.zip", name, lambda t: t.update({key: torch.zeros(())}))
    refused(flat, base, cache, "has the shape")
    junk = write(tmp_path / "junk.zip", {**contents(bundle), name: b"\x80\x04 not tensors" * 9})
    refused(junk, base, cache, "damaged")


def test_phrases_that_cannot_be_read(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    path = write(tmp_path / "odd.zip", {**contents(bundle), "phrases.jsonl": b'{"layer": 0}\n[]\n'})
    plugin = Plugin.load(path, base, cache=tmp_path / "cache")
    with pytest.raises(BundleError, match=r"The phrases in .* cannot be read"):
        plugin.attributions(base, SOURCES[0], "雨停了。")


@pytest.mark.parametrize("content", [None, b"", b"PK", b"%PDF-1.7 not a zip", "folder"])
def test_what_is_no_zip(base: BaseModel, tmp_path: Path, content: Any) -> None:
    path = tmp_path / "plugin.zip"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    refused(path, base, tmp_path / "cache", "no file|not a plugin bundle")
    assert not (tmp_path / "cache").exists()

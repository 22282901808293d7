"""A project's plugins: blends that work like plugins, copies without the user's words, imports that say where they stop."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from engine.base import BaseModel
from engine.core.model_card import parse_card
from engine.core.settings import Settings
from engine.decoding.scoring import score
from engine.decoding.translate import translate
from engine.errors import BundleError, InputError, OptionError, TailorError
from engine.methods import get_method, method_names
from engine.plugins import FORMAT_VERSION, Plugin, PluginStack, read_bundle_card, read_bundle_text, verify_bundle
from engine.plugins.blend import Part, make_blend
from engine.plugins.bundle_content import check_texts
from engine.plugins.import_checks import TITLES, check_bundle
from engine.plugins.library import Library, by_name, needs_texts
from engine.plugins.repack import amend, repack
from engine.store import ProjectRow, Store
from tests.bases import SENTENCES, make_base

SOURCES = [source for source, _ in SENTENCES]


def made(request_for: Callable[..., Any], folder: Path, name: str, method: str, **options: Any) -> Path:
    from engine.workflows.customize.pipeline import customize

    request = request_for(folder / f"{method}.zip", name=name, method=method, method_options=options)
    # Learnt faster, it babbles, and each translation is searched for again and again.
    request = request.replace(training_options={**request.training_options, "learning_rate": 0.007})
    customize(request, folder / f"workspace-{method}")
    return folder / f"{method}.zip"


@pytest.fixture(scope="module")
def domain(request_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second plugin, of another method."""
    return made(request_for, tmp_path_factory.mktemp("domain"), "Manuals", "residual_adapter")


@pytest.fixture(scope="module")
def lookup(request_for: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin that reads its sentences while it translates."""
    few = {"neighbours": 3, "neighbours_translating": 3}
    return made(request_for, tmp_path_factory.mktemp("lookup"), "Looks up", "ngram_memory", **few)


@pytest.fixture(scope="module")
def blend(bundle: Path, domain: Path, base: BaseModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blend") / "both.zip"
    make_blend(folder, "Both", [Part(bundle, 1.0), Part(domain, 0.5)], base=base)
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Library:
    settings = Settings(home=str(tmp_path / "home"), device="cpu")
    return Library(Store(settings.store_url), settings)


@pytest.fixture
def project(library: Library, tiny: Path) -> ProjectRow:
    return library.store.projects.create("Essays", "en", "zh", str(tiny))


# -- blends


@pytest.mark.slow
def test_a_blend_is_its_plugins_at_their_weights(blend: Path, bundle: Path, domain: Path, base: BaseModel, tmp_path: Path) -> None:
    first, second = (Plugin.load(path, base, cache=tmp_path) for path in (bundle, domain))
    both = Plugin.load(blend, base, cache=tmp_path)
    assert both.name == "Both"
    expected = translate(base, SOURCES, PluginStack([first, second], [1.0, 0.5]))
    assert translate(base, SOURCES, both) == expected
    scores = [score for score, _ in score(base, SENTENCES, both)]
    assert scores == [score for score, _ in score(base, SENTENCES, PluginStack([first, second], [1.0, 0.5]))]
    for other in (first, second, PluginStack([first, second])):
        assert scores != [score for score, _ in score(base, SENTENCES, other)], "the weights count"
    half = [score for score, _ in score(base, SENTENCES, both, strength=0.5)]
    assert half == [score for score, _ in score(base, SENTENCES, PluginStack([first, second], [0.5, 0.25]))]
    assert translate(base, SOURCES, both, strength=0.0) == translate(base, SOURCES)


def test_a_weight_of_nothing_leaves_the_other_plugin(bundle: Path, domain: Path, base: BaseModel, tmp_path: Path) -> None:
    make_blend(tmp_path / "b.zip", "b", [Part(bundle, 1.0), Part(domain, 0.0)])
    alone, both = (Plugin.load(path, base, cache=tmp_path / "c") for path in (bundle, tmp_path / "b.zip"))
    assert score(base, SENTENCES, both) == score(base, SENTENCES, alone)


def test_a_blend_says_what_it_is_made_of_and_what_was_read(blend: Path, base: BaseModel, tmp_path: Path) -> None:
    card = verify_bundle(blend)
    assert card["format_version"] == 2
    assert card["config"] == {"weights": [1.0, 0.5], "names": ["Style", "Manuals"]}
    assert card["provenance"]["made_of"] == "Style (memory_adapter, weight 1), Manuals (residual_adapter, weight 0.5)"
    text = read_bundle_text(blend)
    assert "| made of | Style (memory_adapter, weight 1), Manuals" in text
    assert "excluded" not in text
    rows = Plugin.load(blend, base, cache=tmp_path).attributions(base, *SENTENCES[0])
    assert {row["plugin"] for row in rows} == {"Style"}
    assert "blend" not in method_names(), "it is no way to learn from samples"
    assert get_method("blend").capabilities.title == "Blend"


def test_a_blend_is_under_the_licences_of_its_plugins(bundle: Path, domain: Path, tmp_path: Path) -> None:
    licensed = [with_license(bundle, tmp_path / "a.zip", "cc-by-4.0"), with_license(domain, tmp_path / "b.zip", "cc-by-nc-4.0")]
    make_blend(tmp_path / "blend.zip", "Mine", [Part(path, 1.0) for path in licensed])
    card = parse_card(read_bundle_text(tmp_path / "blend.zip"))
    assert card.restricted
    assert card.license_name == "cc by 4.0 and cc by nc 4.0"
    assert card.license_note == "Style: CC BY 4.0. Manuals: CC BY-NC 4.0. Not for commercial use."


def with_license(path: Path, output: Path, name: str) -> Path:
    import hashlib

    with zipfile.ZipFile(path) as old, zipfile.ZipFile(output, "w") as new:
        texts = {member: old.read(member) for member in old.namelist()}
        texts["README.md"] = texts["README.md"].replace(b"---\n", f"---\nlicense: {name}\n".encode(), 1)
        manifest = json.loads(texts["manifest.json"])
        data = texts["README.md"]
        manifest["files"]["README.md"] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        texts["manifest.json"] = json.dumps(manifest).encode()
        for member, data in texts.items():
            new.writestr(member, data)
    return output


@pytest.fixture(scope="module")
def strangers(bundle: Path, domain: Path, blend: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("strangers")
    amend(domain, folder / "other-base.zip", card={"base_fingerprint": "sha256:0", "base_model_name_or_path": "other"})
    amend(domain, folder / "other-way.zip", card={"source": "de"})
    amend(domain, folder / "rewrite.zip", card={"method": "rewrite"})
    part = Part(bundle, 1.0)
    return {
        "one": ([part], "two to 4 plugins, not 1"),
        "same": ([part, part], "different plugins to blend"),
        "heavy": ([part, Part(domain, 1.5)], "weights"),
        "base": ([part, Part(folder / "other-base.zip", 1.0)], r"other and Style for tiny-en-zh\. Only plugins of one base"),
        "direction": ([part, Part(folder / "other-way.zip", 1.0)], "from German to Chinese and Style from English to Chinese"),
        "blend": ([part, Part(blend, 1.0)], "Both is itself a blend"),
        "dial": ([part, Part(folder / "rewrite.zip", 1.0)], "full strength or not at all"),
    }


@pytest.mark.parametrize("case", ["one", "same", "heavy", "base", "direction", "blend", "dial"])
def test_what_cannot_be_blended_is_refused_in_a_sentence(strangers: Any, case: str, tmp_path: Path) -> None:
    parts, words = strangers[case]
    with pytest.raises(InputError, match=words) as caught:
        make_blend(tmp_path / "b.zip", "b", parts)
    assert str(caught.value).endswith(".")
    assert list(tmp_path.iterdir()) == []


def test_a_blend_that_does_not_load_is_not_kept(bundle: Path, domain: Path, base: BaseModel, tmp_path: Path) -> None:
    odd = tmp_path / "odd.zip"
    amend(domain, odd, card={"config": {"bottleneck": 3}})
    with pytest.raises(InputError, match="do not work together"):
        make_blend(tmp_path / "out" / "b.zip", "b", [Part(bundle, 1.0), Part(odd, 1.0)], base=base)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_blend_with_a_damaged_plugin_inside_is_refused(blend: Path, base: BaseModel, tmp_path: Path) -> None:
    inside = tmp_path / "part.zip"
    with zipfile.ZipFile(blend) as opened:
        data = bytearray(opened.read("part-2.zip"))
    data[len(data) // 2] ^= 1
    inside.write_bytes(data)
    amend(blend, tmp_path / "bad.zip", files={"part-2.zip": inside})
    for look in (verify_bundle, lambda path: Plugin.load(path, base, cache=tmp_path / "cache")):
        with pytest.raises(BundleError, match=r"part-2\.zip"):
            look(tmp_path / "bad.zip")
    amend(blend, tmp_path / "nested.zip", files={"part-2.zip": blend})
    with pytest.raises(BundleError, match="blend inside a blend"):
        verify_bundle(tmp_path / "nested.zip")
    with pytest.raises(BundleError, match="blend inside a blend"):
        Plugin.load(tmp_path / "nested.zip", base, cache=tmp_path / "cache")
    amend(blend, tmp_path / "weights.zip", card={"config": {"weights": [1.0, 0.5, 0.5]}})
    with pytest.raises(BundleError, match="weights do not match"):
        Plugin.load(tmp_path / "weights.zip", base, cache=tmp_path / "cache")


# -- the user's own words


@pytest.mark.slow
def test_a_blend_can_be_given_away_without_phrases(blend: Path, base: BaseModel, tmp_path: Path) -> None:
    repack(blend, tmp_path / "given.zip", with_phrases=False)
    verify_bundle(tmp_path / "given.zip")
    with zipfile.ZipFile(tmp_path / "given.zip") as opened, opened.open("part-1.zip") as part:
        assert "phrases.jsonl" not in zipfile.ZipFile(part).namelist()
    both, shared = (Plugin.load(path, base, cache=tmp_path / "c") for path in (blend, tmp_path / "given.zip"))
    assert translate(base, SOURCES, shared) == translate(base, SOURCES, both)


def test_a_method_that_reads_sentences_says_so_and_keeps_them(
    lookup: Path, bundle: Path, request_for: Callable[..., Any], tmp_path: Path
) -> None:
    assert [name for name in method_names() if get_method(name).capabilities.needs_texts] == [
        "ngram_memory",
        "translation_memory",
        "llm_prompt",
    ]
    assert "| sentences | in pairs.jsonl: the method reads them while it translates" in read_bundle_text(lookup)
    assert needs_texts(lookup)
    assert not needs_texts(bundle)
    with pytest.raises(OptionError, match="reads its sentences while it translates"):
        repack(lookup, tmp_path / "given.zip", with_phrases=False)
    make_blend(tmp_path / "blend.zip", "b", [Part(bundle, 1.0), Part(lookup, 1.0)])
    assert needs_texts(tmp_path / "blend.zip")
    with pytest.raises(OptionError, match="reads its sentences while it translates"):
        repack(tmp_path / "blend.zip", tmp_path / "given.zip", with_phrases=False)
    assert not (tmp_path / "given.zip").exists()


def test_a_copy_goes_by_the_present_name(
    library: Library, project: ProjectRow, bundle: Path, base: BaseModel, tmp_path: Path
) -> None:
    row = library.import_bundle(project, bundle, lambda: base)
    library.rename(project.id, "Style", "  鲁迅  essays ")
    row = library.store.plugins.get(row.id)
    assert row.name == "鲁迅 essays"
    library.export(row, tmp_path / "out.zip", with_phrases=False)
    card = verify_bundle(tmp_path / "out.zip")
    assert card["name"] == "鲁迅 essays"
    assert "phrases.jsonl" not in card["files"]
    text = read_bundle_text(tmp_path / "out.zip")
    assert "\n# 鲁迅 essays\n" in text
    assert "| phrases | left out |" in text


# -- imports, names, versions


def stops(path: Path, **more: Any) -> tuple[list[str], str]:
    """The checks that a bundle passed, and the sentence of the one that stopped it."""
    result = list(check_bundle(path, shown="mine.zip", **more))
    assert [check.ok for check in result[:-1]] == [True] * (len(result) - 1)
    return [check.name for check in result if check.ok], "" if result[-1].ok else result[-1].sentence


def test_a_whole_bundle_passes_every_check(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    result = list(check_bundle(bundle, base=lambda: base, direction=("en", "zh"), cache=tmp_path))
    assert [check.name for check in result] == list(TITLES)
    assert all(check.ok and check.sentence.endswith(".") for check in result)
    assert "Made for tiny-en-zh" in result[3].sentence
    assert stops(bundle) == (["file", "format", "checksums", "licence"], "")


def damaged(bundle: Path, folder: Path) -> Iterator[tuple[str, Path, list[str], str]]:
    text = folder / "text.zip"
    text.write_text("no zip", encoding="utf-8")
    yield "text", text, [], "mine.zip is not a plugin bundle"
    stranger = folder / "stranger.zip"
    with zipfile.ZipFile(stranger, "w") as new:
        new.writestr("virus.exe", b"x")
    yield "stranger", stranger, [], "a file that does not belong in a plugin: 'virus.exe'"
    amend(bundle, folder / "new.zip", card={"format_version": FORMAT_VERSION + 1})
    words = f"has format {FORMAT_VERSION + 1}; this program reads formats up to {FORMAT_VERSION}. Update Tailor MT."
    yield "format", folder / "new.zip", ["file"], words
    bits = folder / "bits.zip"
    data = bytearray(bundle.read_bytes())
    with zipfile.ZipFile(bundle) as opened:
        data[opened.getinfo("memory.safetensors").header_offset + 2000] ^= 1
    bits.write_bytes(data)
    passed = ["file", "format", "languages", "base"]
    yield "bytes", bits, passed, "memory.safetensors"
    amend(bundle, folder / "way.zip", card={"source": "de"})
    yield "languages", folder / "way.zip", passed[:2], "from German to Chinese, this project from English to Chinese"
    amend(bundle, folder / "base.zip", card={"base_fingerprint": "sha256:123", "base_model_name_or_path": "other"})
    yield "base", folder / "base.zip", passed[:3], "made for the base other (123), this project has tiny-en-zh"
    amend(bundle, folder / "method.zip", card={"method": "magic"})
    yield "method", folder / "method.zip", [*passed, "checksums"], "There is no method magic"


def hostile(bundle: Path, folder: Path) -> Iterator[tuple[str, Path, str, str]]:
    """(case, bundle, the last check that it passes, words of the refusal) of bundles whose every byte is as the manifest says."""
    long = "".join(map(str, range(100_000)))
    for case, name, words in (
        ("long", long, f"name is a text of {len(long):,} characters"),
        ("zero", "a\0b", "name contains the character U+0000"),
        ("turned", "a\u202eb", "name contains the character U+202E"),
    ):
        amend(bundle, folder / f"{case}.zip", card={"name": name})
        yield case, folder / f"{case}.zip", "file", words
    amend(bundle, folder / "option.zip", card={"decoding": {"beem": 4}})
    yield "option", folder / "option.zip", "file", "Did you mean beam?"
    amend(bundle, folder / "beam.zip", card={"decoding": {"beam": 10**9}})
    yield "beam", folder / "beam.zip", "file", "its decoding defaults cannot be used"
    amend(bundle, folder / "metric.zip", card={"metrics": {"bleu": float("nan")}})
    yield "metric", folder / "metric.zip", "file", "bleu in the plugin's card is not a finite number"
    with zipfile.ZipFile(bundle) as opened:
        weights = load(opened.read("adapter_model.safetensors"))
    for case, value in (("nan", float("nan")), ("infinite", float("inf")), ("huge", 1e30)):
        key = next(key for key, tensor in weights.items() if tensor.dtype == torch.float32)  # a half holds no 1e30
        spoilt = {**weights, key: torch.full_like(weights[key], value)}
        (folder / "weights").write_bytes(save(spoilt))
        amend(bundle, folder / f"{case}.zip", files={"adapter_model.safetensors": folder / "weights"})
        yield case, folder / f"{case}.zip", "checksums", "holds numbers that are not finite or larger than 1,000,000"


def test_a_bundle_that_would_spoil_a_project_is_refused(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    for case, path, passed, words in hostile(bundle, tmp_path):
        result, sentence = stops(path, base=lambda: base, direction=("en", "zh"), cache=tmp_path / "cache")
        assert (case, result[-1]) == (case, passed)
        assert words in sentence
        assert len(sentence) < 400


@pytest.mark.parametrize("value", ["a\ud800b", "a\x85", {"a\u2066b": 1}, [["\u200f"]]])
def test_texts_that_do_not_show_as_they_are_are_refused_wherever_they_stand(value: Any) -> None:
    check_texts(Path("a.zip"), {"name": "鲁迅 – été", "provenance": {"parser": "two\nlines"}})
    with pytest.raises(BundleError, match="contains the character U"):
        check_texts(Path("a.zip"), {"provenance": {"parser": value}})


def test_each_failure_stops_at_its_check_with_a_sentence(bundle: Path, base: BaseModel, tmp_path: Path) -> None:
    for case, path, passed, words in damaged(bundle, tmp_path):
        result, sentence = stops(path, base=lambda: base, direction=("en", "zh"), cache=tmp_path / "cache")
        assert (case, result) == (case, passed)
        assert words in sentence
        assert str(tmp_path) not in sentence
        assert sentence.endswith((".", "?"))


def test_bundles_of_one_name_are_versions(library: Library, project: ProjectRow, bundle: Path, base: BaseModel) -> None:
    rows = [library.import_bundle(project, bundle, lambda: base) for _ in range(3)]
    assert len({row.path for row in rows}) == 3
    (versions,) = library.versions(project.id)
    assert versions.newest == rows[2]
    assert [versions.number(row) for row in versions.rows] == [3, 2, 1]
    assert library.tag(project.id, "Style", ["client A", " draft ", "", "draft"]) == ["client A", "draft"]
    assert library.store.tags.of(project.id) == {row.id: ["client A", "draft"] for row in rows}
    library.delete(rows[2])
    assert not Path(rows[2].path).exists()
    assert Path(rows[1].path).exists()
    (versions,) = by_name(library.store.plugins.list(project.id))
    assert versions.newest == rows[1]
    assert set(library.store.tags.of(project.id)) == {rows[0].id, rows[1].id}
    with pytest.raises(InputError, match="needs a name"):
        library.rename(project.id, "Style", "  ")
    with pytest.raises(InputError, match="no plugin named Other"):
        library.rename(project.id, "Other", "New")


def test_a_bundle_elsewhere_stays_when_its_plugin_goes(library: Library, project: ProjectRow, bundle: Path) -> None:
    row = library.store.plugins.create(project.id, "Mine", method="memory_adapter", path=str(bundle))
    library.delete(row)
    assert bundle.exists()
    with pytest.raises(InputError):
        library.store.plugins.get(row.id)


def test_a_projects_plugins_are_blended_into_a_plugin_of_it(
    library: Library, project: ProjectRow, bundle: Path, domain: Path, base: BaseModel
) -> None:
    rows = [library.import_bundle(project, path, lambda: base) for path in (bundle, domain)]
    row = library.blend(project, "Style & manuals", {rows[0].id: 0.7, rows[1].id: 0.5}, base)
    assert row.method == "blend"
    assert read_bundle_card(row.path)["config"]["weights"] == [0.7, 0.5]
    library.delete(rows[0])
    library.delete(rows[1])
    plugin = Plugin.load(row.path, base, cache=library.settings.home_dir / "unpacked")
    assert translate(base, SOURCES, plugin), "it goes on without the plugins that it was made of"
    library.store.defaults.set(project.id, row.id)
    assert library.store.defaults.get(project.id) == row
    other = library.store.projects.create("Other", "en", "zh", project.base)
    with pytest.raises(InputError, match="another project"):
        library.blend(other, "x", {row.id: 1.0})


def test_an_import_for_another_base_leaves_nothing(library: Library, project: ProjectRow, bundle: Path, tmp_path: Path) -> None:
    other = BaseModel.load(make_base(tmp_path / "other", d=16, updates=0), "en", "zh", device="cpu")
    with pytest.raises(TailorError, match="made for the base"):
        library.import_bundle(project, bundle, lambda: other)
    assert library.store.plugins.list() == []
    assert list(library.folder(project.id).iterdir()) == []

"""A large memory read by its likeliest rows and clusters, against reading all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.decoding.translate import translate
from engine.memory import PhrasePair, record
from engine.memory import hnsw_index as graph
from engine.memory.approximate_attention import ApproximateAttention
from engine.methods import Artefacts, get_method
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.methods.memory_adapter.module import SPEED, MemoryReader
from engine.plugins import Plugin
from tests.bases import EN_ZH, SAMPLES

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def base():
    from engine.base import BaseModel

    return BaseModel.load(str(EN_ZH), "en", "zh", device="cpu")


@pytest.fixture(scope="module")
def english() -> list[str]:
    lines = (SAMPLES / "it-help-en/it-help.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if 20 < len(line) < 70][:12]


@pytest.fixture(scope="module")
def memory(base, tmp_path_factory):
    """Recorded states of stretches of real text, 500 a layer."""
    text = (SAMPLES / "literary-zh/literary-zh.txt").read_text(encoding="utf-8").splitlines()
    parts = list(dict.fromkeys(line[i : i + n] for n in (1, 2, 3, 5) for line in text[:60] for i in range(0, 12, 2)))
    words = (SAMPLES / "general-en/general-en.txt").read_text(encoding="utf-8").split()
    pairs = [PhrasePair(i % 4, part, " ".join(words[i : i + 1 + i % 4]), len(part), 1) for i, part in enumerate(parts[:2000])]
    return record(base, pairs, tmp_path_factory.mktemp("memory") / "memory.safetensors")


def reader_for(memory: torch.Tensor, **options) -> MemoryReader:
    torch.manual_seed(5)
    reader = MemoryReader(memory.shape[1], MemoryAdapterConfig(**options)).eval()
    reader.memory = memory
    return reader


def exact(keys: torch.Tensor, rows: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    return torch.softmax(queries @ keys.T, -1) @ rows


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0])
def test_all_rows_among_the_best_is_the_exact_reading(sharpness: float) -> None:
    torch.manual_seed(1)
    keys, rows, queries = torch.randn(60, 16), torch.randn(60, 16), torch.randn(3, 5, 16)
    nearest = ApproximateAttention(keys * sharpness, rows, k=60, breadth=400)
    result = nearest.read(queries, rows)
    torch.testing.assert_close(result, exact(keys * sharpness, rows, queries), atol=1e-4, rtol=1e-4)


def test_rows_that_are_equal_within_clusters_are_read_exactly_by_any_k() -> None:
    torch.manual_seed(2)
    centres, values = torch.randn(6, 16) * 4, torch.randn(6, 16)
    owner = torch.randint(6, (900,))
    queries = torch.randn(20, 16)
    for k in (1, 7, 50):
        result = ApproximateAttention(centres[owner], values[owner], k=k, breadth=64).read(queries, values[owner])
        torch.testing.assert_close(result, exact(centres[owner], values[owner], queries), atol=2e-3, rtol=1e-2)


def test_weights_sum_to_one_whatever_is_found() -> None:
    torch.manual_seed(3)
    keys, queries = torch.randn(3000, 16), torch.randn(50, 16)
    ones = torch.ones(3000, 16)
    result = ApproximateAttention(keys, ones, k=8, breadth=8).read(queries, ones)
    torch.testing.assert_close(result, torch.ones(50, 16), atol=1e-4, rtol=1e-4)


def test_graph_and_clusters_are_made_once_and_known_by_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(4)
    keys, rows, queries = torch.randn(2000, 16), torch.randn(2000, 16), torch.randn(50, 16)
    selected, sizes = tmp_path / "graphs/0-self_attn", []
    really = graph.make_graph

    def make(faiss, keys):
        sizes.append(len(keys))
        return really(faiss, keys)

    monkeypatch.setattr(graph, "make_graph", make)

    def read(keys: torch.Tensor = keys) -> torch.Tensor:
        return ApproximateAttention(keys, rows[: len(keys)], k=8, breadth=32, path=selected).read(queries, rows[: len(keys)])

    first = read()
    assert torch.equal(read(), first)
    assert sizes == [2000], "the second time it was read"
    assert {file.name for file in selected.parent.iterdir()} == {"0-self_attn.faiss", "0-self_attn.safetensors"}
    read(keys + 1e-3)
    read(keys[:1500])
    assert sizes == [2000, 2000, 1500], "other keys"
    read()
    for ending in (".faiss", ".safetensors"):
        content = selected.with_suffix(ending).read_bytes()
        for damaged in (b"", content[: len(content) // 2], content[:200] + bytes(4000) + content[4200:]):
            selected.with_suffix(ending).write_bytes(damaged)
            torch.testing.assert_close(read(), first)
    selected.with_suffix(".faiss").unlink()
    selected.parent.joinpath("0-self_attn.faiss").mkdir()
    torch.testing.assert_close(read(), first)  # it cannot be written there


@pytest.mark.slow
def test_a_plugin_keeps_them_beside_its_unpacked_files(base, memory, english, tmp_path: Path) -> None:
    from engine.plugins import BundleContent, export_bundle

    method, config = get_method("memory_adapter"), MemoryAdapterConfig(search="top_k", top_k=16)
    module = method.build(base, Artefacts(memory=memory), config)
    file = export_bundle(
        tmp_path / "p.zip",
        BundleContent(name="p", base=base, method=method, config=config, module=module, files={"memory.safetensors": memory.path}),
    )
    first = Plugin.load(file, base, cache=tmp_path / "unpacked")
    graphs = sorted((tmp_path / "unpacked").glob("*/graphs/*.faiss"))
    assert len(graphs) == len(module.readers())
    stamps = [path.stat().st_mtime_ns for path in graphs]
    again = Plugin.load(file, base, cache=tmp_path / "unpacked")
    assert [path.stat().st_mtime_ns for path in graphs] == stamps
    assert translate(base, english[:4], again) == translate(base, english[:4], first)


@pytest.mark.slow
def test_on_real_states_it_is_far_nearer_than_the_best_alone(base, memory) -> None:
    """Flat readings at cross-attention, of which the best few hold little."""
    method = get_method("memory_adapter")
    module = method.build(base, Artefacts(memory=memory), MemoryAdapterConfig(search="exact"))
    method.prepare_for_inference(module)
    for _, position, reader in module.readers():
        queries = (
            reader.query(reader.memory[::7] + 0.3 * reader.memory[1::7][: len(reader.memory[::7])].mean(0))
            * reader.inverse_temperature
        )
        with torch.no_grad():
            expected = exact(reader.keys, reader.memory, queries)
            nearest = ApproximateAttention(reader.keys, reader.memory, k=16, breadth=64)
            scores, rows = nearest.best(queries)
            alone = (torch.softmax(scores, -1)[:, None] @ reader.memory[rows])[:, 0]
            all_best = (queries @ reader.keys.T).topk(16).values  # (R, 16)
            weight = (scores - all_best[:, :1]).exp().sum(1) / (all_best - all_best[:, :1]).exp().sum(1)  # (R,)
            size = (expected - reader.memory.mean(0)).norm()
            error, of_best = ((reading - expected).norm() / size for reading in (nearest.read(queries, reader.memory), alone))
        assert weight.mean() > 0.8, position
        assert error < 0.5, position  # which the states of the base decide; at best alone it is 26 to 43
        assert error < max(0.05, 0.3 * float(of_best)), (position, error, of_best)


@pytest.mark.slow
def test_translations_are_nearly_those_of_the_exact_reading(base, memory, english) -> None:
    from sacrebleu.metrics import CHRF

    result = {}
    for search in ("exact", "top_k"):
        method = get_method("memory_adapter")
        module = method.build(base, Artefacts(memory=memory), MemoryAdapterConfig(search=search))
        for _, _, reader in module.readers():
            reader.scale.data.fill_(0.1 / SPEED)
        method.prepare_for_inference(module)
        assert all((reader.nearest is not None) == (search == "top_k") for _, _, reader in module.readers())
        result[search] = translate(base, english, Plugin(method, module, {}))
    assert result["exact"] != translate(base, english), "the plugin does something"
    score = CHRF().corpus_score
    assert score(result["top_k"], [result["exact"]]).score > 80


def test_auto_reads_all_of_a_small_memory_and_an_index_goes_when_training_goes_on() -> None:
    torch.manual_seed(4)
    memory = torch.randn(200, 16)
    reader = reader_for(memory)
    reader.project()
    assert reader.nearest is None
    assert reader.keys is not None
    reader = reader_for(memory, search="top_k", top_k=4)
    reader.project()
    assert reader.keys is None
    with torch.no_grad():
        near = reader.read(torch.randn(2, 3, 16))
    assert near.shape == (2, 3, 16)
    reader.recorded = {}
    with torch.no_grad():
        reader.read(torch.randn(1, 2, 16))
    assert reader.recorded["weights"].shape == (1, 2, 200), "what was read is told of all phrases"
    reader.forget_projection()
    assert reader.nearest is None


def test_auto_takes_the_index_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.methods.memory_adapter import module

    monkeypatch.setattr(module, "EXACT", 100)
    reader = reader_for(torch.randn(101, 16))
    reader.project()
    assert reader.nearest is not None


@pytest.mark.parametrize("options", [{}, {"bias": True, "scale_query": True, "temperature": 0.1}, {"gate": False}])
def test_products_laid_out_read_as_plain_ones(options, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from engine.methods.memory_adapter import module

    if not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    reader = reader_for(torch.randn(300, 16), **options)
    for parameter in reader.parameters():
        parameter.data = torch.randn_like(parameter) * (0.02 if parameter.dim() == 0 else 0.4)
    anchor, query = torch.randn(5, 3, 16), torch.randn(5, 3, 16)
    result = {}
    for quick in (False, True):
        monkeypatch.setattr(module, "is_faster", lambda quick=quick: quick)
        reader.project()
        with torch.inference_mode():
            result[quick] = reader(anchor, query, 0.7)
        assert (reader.laid is not None) is quick
        assert (reader.keys is None) is quick, "keys are held once"
    torch.testing.assert_close(result[True], result[False], atol=1e-5, rtol=1e-4)
    learning = reader(anchor, query.requires_grad_(), 0.7)
    torch.testing.assert_close(learning, result[False].clone(), atol=1e-5, rtol=1e-4)
    learning.sum().backward()
    assert query.grad is not None, "with gradients all goes the plain way"

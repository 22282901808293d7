"""What holds for every method that attends to pairs it looks up."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.base.decoding_options import Decoding
from engine.decoding.translate import translate
from engine.methods import get_method
from engine.plugins import Plugin
from tests.retrieval_methods import SMALL, alike, batch_of, forward, trained_module


@pytest.fixture(scope="module", params=SMALL)
def plugin(request: Any, base: Any, tmp_path_factory: Any) -> Plugin:
    name = request.param
    return Plugin(get_method(name), trained_module(name, base, tmp_path_factory.mktemp(name), **SMALL[name]), {})


def test_attached_it_changes_the_base_and_nothing_stays(base: Any, plugin: Plugin) -> None:
    method, module, batch = plugin.method, plugin.module, batch_of(base)
    before = forward(base, batch)
    with method.attach(base, module):
        assert torch.equal(forward(base, batch), before)  # nothing was seen yet
        method.set_source(base, module, batch.sources)
        assert not torch.allclose(forward(base, batch), before)
    with method.attach(base, module, 0.0):
        method.set_source(base, module, batch.sources)
        assert torch.equal(forward(base, batch), before)
    assert torch.equal(forward(base, batch), before)
    assert not any(part._forward_hooks for part in base.model.modules())


def test_beam_search_reads_each_sentences_own_memory(base: Any, plugin: Plugin) -> None:
    sources, decoding = alike(base), Decoding(beam=3, max_length_ratio=1.0)
    together = translate(base, sources, plugin, decoding=decoding)
    assert together == [translate(base, [source], plugin, decoding=decoding)[0] for source in sources]

"""Lookup of methods by name: those of this package, and those that other distributions add as entry points.

A distribution adds a method with an entry point in the group `tailormt.methods` that refers to the Method class.
Modules are imported only when a method is requested, so that listing names is cheap.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache

from engine.errors import OptionError
from engine.messages import Message
from engine.methods.interface import Method

BUILT_IN = {
    "memory_adapter": "engine.methods.memory_adapter.method:MemoryAdapter",
    "residual_adapter": "engine.methods.residual_adapter.method:ResidualAdapter",
    "houlsby_adapter": "engine.methods.houlsby_adapter.method:HoulsbyAdapter",
    "lhuc": "engine.methods.lhuc.method:Lhuc",
    "extreme": "engine.methods.output_bias.method:Extreme",
    "knn": "engine.methods.knn.method:KnnMethod",
    "domain_mixing": "engine.methods.domain_mixing.method:DomainMixing",
    "fine_tuning": "engine.methods.fine_tuning.method:FineTuning",
    "rewrite": "engine.methods.rewrite.method:Rewrite",
    "ngram_memory": "engine.methods.ngram_memory.method:NgramMemory",
    "translation_memory": "engine.methods.translation_memory.method:TranslationMemory",
    "density_ratio": "engine.methods.density_ratio.method:DensityRatioMethod",
    "dexperts": "engine.methods.dexperts.method:DExperts",
    "llm_prompt": "engine.methods.llm_prompt.method:LlmPrompt",
}
# Methods that bundles can have but that cannot be chosen to make one: found by name, but not listed.
UNLISTED = {"blend": "engine.plugins.blend:Blend"}
_registered: dict[str, type[Method]] = {}


@cache
def _entry_points() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group="tailormt.methods")}


def register(method: type[Method]) -> type[Method]:
    """Add a method class for this process; usable as a decorator."""
    _registered[method.name] = method
    return method


def method_names() -> list[str]:
    """All known methods, the built-in ones first."""
    return list(dict.fromkeys([*BUILT_IN, *_entry_points(), *_registered]))


def get_method(name: str) -> Method:
    """The method of that name. Raises OptionError that suggests the closest known name."""
    if name in _registered:
        return _registered[name]()
    target = {**_entry_points(), **UNLISTED, **BUILT_IN}.get(name)
    if target is None:
        near = difflib.get_close_matches(name, method_names(), n=1)
        hint = (
            Message(" Did you mean {name}?", name=near[0]) if near else Message(" Known: {names}.", names=", ".join(method_names()))
        )
        raise OptionError("There is no method {name}.{hint}", name=name, hint=hint)
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)()

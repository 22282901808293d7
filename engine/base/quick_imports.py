"""Importing torch and transformers, and building a model, in half the processor time.

transformers imports torch's compiler and its distributed tensors, for decorators and classes that translation never uses, and
lists the files of all its models: more than a second at the start of every command and worker. During imports in this
module's blocks, decorators of the compiler leave functions unchanged, torch appears to be a build without `torch.distributed`
(which transformers supports), torchvision appears not to be installed, and no list of models is made. Other code that asks
for a module of the compiler gets the real one, and afterwards everything can be imported as usual. Modules whose weights will
come from a checkpoint are not initialised. The garbage collector, which would run dozens of times over permanent module data,
is off, which saves another fifth.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"
INDEX_TRACING = f"{COMPILER}._trace_wrapped_higher_order_op"  # needed for traced masks only, which are not used here
MODELS = "transformers.models"
IMAGES = "torchvision"  # transformers imports it with its losses, and it imports the compiler


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import torch and transformers inside, and load a model: initial weights use the compiler too."""
    was = gc.isenabled()
    gc.disable()
    try:
        with without_compiler(), without_first_weights(), without_symbolic_shapes():
            yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """Within the block, `torch._dynamo` is a stand-in and `torch.distributed` is reported unavailable.

    Does nothing if the compiler has been imported before.
    """
    if COMPILER in sys.modules:
        yield
        return
    from torch import distributed

    stand_ins: dict[str, Any] = {
        COMPILER: StandIn(COMPILER),
        INDEX_TRACING: StandIn(INDEX_TRACING, {"TransformGetItemToIndex": lambda: real(INDEX_TRACING).TransformGetItemToIndex()}),
    }
    if MODELS not in sys.modules and (spec := find_spec("transformers")) and spec.origin:
        stand_ins[MODELS] = StandIn(MODELS, {})
        stand_ins[MODELS].__path__ = [str(Path(spec.origin).parent / "models")]
    if IMAGES not in sys.modules:
        stand_ins[IMAGES] = None  # tells Python that there is no such package
    sys.modules.update(stand_ins)
    finder = CompilerFinder()
    sys.meta_path.insert(0, finder)
    available = distributed.is_available
    distributed.is_available = lambda: False
    try:
        yield
    finally:
        distributed.is_available = available
        sys.meta_path.remove(finder)
        for name, module in stand_ins.items():
            if name in sys.modules and sys.modules[name] is module:
                del sys.modules[name]


@contextlib.contextmanager
def without_first_weights() -> Iterator[None]:
    """Within the block, embeddings and linear layers on the device "meta" are not initialised."""
    from torch import nn

    kinds = (nn.Embedding, nn.Linear)
    originals = [kind.reset_parameters for kind in kinds]

    def drawn(reset: Callable[[Any], None]) -> Callable[[Any], None]:
        return lambda module: None if module.weight.is_meta else reset(module)

    for kind, reset in zip(kinds, originals, strict=True):
        kind.reset_parameters = drawn(reset)  # type: ignore[attr-defined, method-assign]
    try:
        yield
    finally:
        for kind, reset in zip(kinds, originals, strict=True):
            kind.reset_parameters = reset  # type: ignore[attr-defined, method-assign]


@contextlib.contextmanager
def without_symbolic_shapes() -> Iterator[None]:
    """Within the block, weights missing from a checkpoint are allocated without symbolic shapes, which import sympy (0.7 s)."""
    import torch

    empty_like = torch.empty_like

    def with_memory(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
        if tensor.is_meta and options.keys() == {"device"}:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=options["device"])
        return empty_like(tensor, **options)

    torch.empty_like = with_memory  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.empty_like = empty_like


class StandIn(ModuleType):
    """A stand-in for a package: decorators that do nothing, or, with `known`, its entries and the real package's others."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 - a package's

    def __init__(self, name: str, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(name)
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._known is None:
            return undecorated
        return self._known[name] if name in self._known else getattr(real(self.__name__), name)


class CompilerFinder(MetaPathFinder, Loader):
    """Imports the real compiler once one of its modules is requested."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if not name.startswith(f"{COMPILER}.") or not isinstance(sys.modules.get(COMPILER), StandIn):
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        real(COMPILER)
        return importlib.import_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has been imported already."""


def real(name: str) -> ModuleType:
    """The real module, which replaces its stand-in from now on."""
    if isinstance(sys.modules.get(name), StandIn):
        del sys.modules[name]
    return importlib.import_module(name)


def undecorated(function: Any = None, *args: object, **settings: object) -> Any:
    """A decorator, with or without settings, that leaves the function unchanged."""
    return function if callable(function) else identity


def identity(function: Callable[..., Any]) -> Callable[..., Any]:
    return function

"""Importing torch and transformers, and building a model, in half the processor time.

transformers imports torch's compiler and its distributed tensors, for decorators and classes that translation never uses, and
lists the files of all its models: more than a second at the start of every command and worker. While it is imported here,
decorators of the compiler leave functions as they are, torch is taken for a build without `torch.distributed`, which transformers
supports, torchvision for not installed, and no list of models is made. Whatever else asks for a module of the compiler gets the
real one. Afterwards all of that is imported and used as ever. Modules that a checkpoint's weights
will fill draw no first weights. Without the garbage collector, which runs dozens of times over what modules keep for ever, imports
take a fifth less again.
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
INDEX_TRACING = f"{COMPILER}._trace_wrapped_higher_order_op"  # masks that are traced need it; ours are not
MODELS = "transformers.models"
IMAGES = "torchvision"  # transformers imports it with its losses, and it imports the compiler


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import torch and transformers inside, and load a model: its first weights ask for the compiler too."""
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
    """Inside, `torch._dynamo` is a stand-in and `torch.distributed` says that it is not available, unless the compiler has been
    imported before.
    """
    if COMPILER in sys.modules:
        yield
        return
    from torch import distributed

    stand_ins: dict[str, Any] = {
        COMPILER: StandIn(COMPILER),
        INDEX_TRACING: StandIn(
            INDEX_TRACING, {"TransformGetItemToIndex": lambda: real(INDEX_TRACING).TransformGetItemToIndex()}
        ),
    }
    if MODELS not in sys.modules and (spec := find_spec("transformers")) and spec.origin:
        stand_ins[MODELS] = StandIn(MODELS, {})
        stand_ins[MODELS].__path__ = [str(Path(spec.origin).parent / "models")]
    if IMAGES not in sys.modules:
        stand_ins[IMAGES] = None  # how Python is told that there is no such package
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
    """Inside, embeddings and linear maps that are made without memory of their own (on the device "meta") draw no first weights."""
    from torch import nn

    kinds = (nn.Embedding, nn.Linear)
    own = [kind.reset_parameters for kind in kinds]

    def drawn(reset: Callable[[Any], None]) -> Callable[[Any], None]:
        return lambda module: None if module.weight.is_meta else reset(module)

    for kind, reset in zip(kinds, own, strict=True):
        kind.reset_parameters = drawn(reset)  # type: ignore[attr-defined, method-assign]
    try:
        yield
    finally:
        for kind, reset in zip(kinds, own, strict=True):
            kind.reset_parameters = reset  # type: ignore[attr-defined, method-assign]


@contextlib.contextmanager
def without_symbolic_shapes() -> Iterator[None]:
    """Inside, weights that a checkpoint lacks get their memory without torch's symbolic shapes, which import sympy: 0.7 s."""
    import torch

    empty_like = torch.empty_like

    def with_memory(tensor: torch.Tensor, **given: Any) -> torch.Tensor:
        if tensor.is_meta and given.keys() == {"device"}:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=given["device"])
        return empty_like(tensor, **given)

    torch.empty_like = with_memory  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.empty_like = empty_like


class StandIn(ModuleType):
    """A package with what transformers wants of it: decorators that do nothing, or what `known` holds and of all else that of
    the real one.
    """

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
    """Imports the compiler itself once one of its modules is asked for."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if not name.startswith(f"{COMPILER}.") or not isinstance(sys.modules.get(COMPILER), StandIn):
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        real(COMPILER)
        return importlib.import_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """It has been."""


def real(name: str) -> ModuleType:
    """The module itself, from now on."""
    if isinstance(sys.modules.get(name), StandIn):
        del sys.modules[name]
    return importlib.import_module(name)


def undecorated(function: Any = None, *args: object, **settings: object) -> Any:
    """A decorator, with settings or without, that leaves the function as it is."""
    return function if callable(function) else identity


def identity(function: Callable[..., Any]) -> Callable[..., Any]:
    return function

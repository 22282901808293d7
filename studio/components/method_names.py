"""Display names of methods, the same everywhere as on the cards of the page Train."""

from __future__ import annotations

from engine.errors import TailorError
from engine.methods import get_method
from engine.workflows.customize.request import AUTO
from studio.i18n.translate import tr


def method_name(name: object) -> str:
    """`knn` -> `kNN-MT`. Unregistered names, such as a blend or a method of another version, are shown as they are."""
    if name == AUTO:
        return tr("Automatic")
    try:
        return tr(get_method(str(name)).capabilities.title)
    except TailorError:
        return tr(str(name).replace("_", " "))

"""Domain proportions for the interface: read off a plugin, or off proportions fitted on the samples and kept in a folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BundleError, InputError, OptionError
from studio.api.errors import Problem

if TYPE_CHECKING:
    from engine.base import BaseModel
    from engine.store import ProjectRow
    from studio.api.bodies import ProportionsWish
    from studio.api.desk import Desk

__all__ = ["proportions_of"]


def proportions_of(desk: Desk, project: ProjectRow, wish: ProportionsWish) -> dict[str, Any]:
    """Domains, the sentences' words, and what was seen of the samples. Raises Problem or a TailorError."""
    from engine.methods.domain_mixing import proportions as domain

    base = desk.service.base_model(project)
    plugin = None
    if wish.plugin is not None:
        row = desk.find_plugin(str(wish.plugin), project)
        if row is None:
            raise Problem(404, "Name a plugin by its number.")
        plugin = desk.service.plugin(row, base)
        if not plugin.method.capabilities.offers_proportions:
            raise OptionError(f"{row.name} is of the method {row.method}, which has no domain proportions.")
        model: Any = plugin.module.proportion_model()  # type: ignore[operator]
    else:
        model = fitted(desk, project, base)
    sources = None
    if model.sources and wish.side == "decoder":
        other = domain.reversed_base(base)
        if other is not None:
            from engine.decoding.greedy import back_translate

            sources = back_translate(other, wish.sentences)
    found = domain.proportions_of(base, model, wish.sentences, wish.side, plugin=plugin, sources=sources)
    return {"domains": list(model.domains), "sentences": found, "corpus": model.corpus}


def fitted(desk: Desk, project: ProjectRow, base: BaseModel) -> Any:
    """Proportions fitted on the project's samples: those of an earlier call while the samples are the same."""
    from engine.corpora import Segment
    from engine.methods.domain_mixing.config import DomainMixingConfig
    from engine.methods.domain_mixing.general import by_domain, with_general
    from engine.methods.domain_mixing.model import ProportionModel
    from engine.methods.domain_mixing.proportions import fit_proportions

    workspace = desk.service.workspace(project.id)
    corpus, folder = workspace / "corpus.jsonl", workspace / "api-proportions"
    shown = workspace / "proportions" / "shown.json"  # those that were fitted when the samples were read
    if shown.is_file() and corpus.is_file() and shown.stat().st_mtime >= corpus.stat().st_mtime:
        with contextlib.suppress(BundleError, OSError, ValueError, KeyError):
            model = ProportionModel.load(shown.parent, base)
            model.corpus = json.loads(shown.read_text(encoding="utf-8"))["corpus"]
            return model
    if not corpus.is_file():
        raise Problem(409, "This project has no samples that were read yet. Add some and wait for their job.")
    stamp = {"corpus": corpus.stat().st_mtime_ns, "bytes": corpus.stat().st_size, "base": base.fingerprint()}
    if stamp_of(folder) == stamp:
        try:
            model = ProportionModel.load(folder, base)
            model.corpus = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
            return model
        except (BundleError, OSError, ValueError):
            pass  # they are fitted anew
    segments = [
        Segment(**{key: row[key] for key in ("text", "source", "file", "line", "domain") if row.get(key) is not None})
        for row in desk.service.sentences(project.id)
    ]
    config = DomainMixingConfig()
    texts = [segment.text for segment in segments]
    domains = with_general(by_domain(segments), project.target, desk.service.settings.assets_dir, config.general, texts)
    if len(domains) < 2:
        raise InputError("Proportions need two domains or more. Add a file of another domain to the samples.")
    model = fit_proportions(base, domains, epsilon=config.epsilon, ridge=config.ridge, balance=config.balance,
                            words=config.words)  # fmt: skip
    model.save(folder)
    (folder / "corpus.json").write_text(json.dumps(model.corpus, ensure_ascii=False), encoding="utf-8")
    (folder / "stamp.json").write_text(json.dumps(stamp), encoding="utf-8")
    return model


def stamp_of(folder: Path) -> Any:
    try:
        return json.loads((folder / "stamp.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

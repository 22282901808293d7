"""The page Bases: what is at hand, what is known of a pair, adding with consent, removing; the line about a shipped base."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core.actor import Actor, Forbidden
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import InputError, MissingError, ModelError
from engine.jobs.registry import KINDS, JobContext
from studio.components.base_note import base_note
from studio.components.bases_boxes import directions_text, installed_box, jobs_box, recommended_box
from studio.components.home_welcome import first_base, first_sample, start_with_sample, welcome
from studio.components.new_project_form import NewProjectForm
from studio.i18n.translate import speaking
from studio.services.base_models import BaseModels
from studio.services.catalog import default_pair
from studio.services.service import Service
from tests.bases import EN_ZH, copy_base
from tests.hub import COMMIT, served_hub


@pytest.fixture
def models(service: Service) -> BaseModels:
    return BaseModels(service)


@pytest.fixture
def hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hub with group/open and group/research; the folder of the second."""
    from huggingface_hub import constants

    folders = {}
    for name, licence in (("open", "apache-2.0"), ("research", "cc-by-nc-4.0")):
        folder = copy_base(tiny, tmp_path / "hub" / name)
        (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n# It\n", encoding="utf-8")
        folders[f"group/{name}"] = folder
    research = folders["group/research"]
    (research / "model.safetensors").rename(research / "pytorch_model.bin")
    with served_hub(folders) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield research


def add(service: Service, models: BaseModels, origin: str) -> str:
    """Add a base as the page and a worker do; its name."""
    token, _ = models.look_up(origin)
    job = models.add(token, agreed=True)
    context = JobContext(job, service.store, service.settings, service.settings.home_dir, Progress())
    name = str(KINDS["add_base"].run(context)["name"])
    service.store.jobs.cancel(job.id)
    return name


def one_way(tiny: Path, folder: Path) -> Path:
    """A copy of the tiny base that says it translates from English to Chinese only."""
    copy_base(tiny, folder)
    words = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    selected = {(f"tag{i}" if word.startswith(">>") else word): i for word, i in words.items()}
    (folder / "vocab.json").write_text(json.dumps(selected, ensure_ascii=False), encoding="utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config |= {"source_lang": "en", "target_lang": "zh"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_the_bases_at_hand_with_direction_size_and_bleu(service: Service, models: BaseModels) -> None:
    project = service.create_project("Novels", "en", "zh", str(EN_ZH))
    first, other = models.installed(project)
    assert (first.name, first.current, first.usable, first.shipped) == ("en-zh", True, False, True)
    assert {(score.source, score.target) for score in first.scores} == {("en", "zh")}
    assert (other.name, other.current, other.usable) == ("de-en", False, False)
    assert directions_text(first) == "English and Chinese, both ways"
    html = installed_box(models, project)
    assert html.count("demonstration model") == 2
    assert "research and evaluation only" in html
    assert f"{first.scores[0].bleu:.1f}" in html
    with speaking("zh"):
        assert "演示模型" in installed_box(models, project)


def test_well_known_models_of_a_pair(models: BaseModels) -> None:
    html = recommended_box(models, "en", "zh")
    assert html.count('data-act="look"') == 6  # five models and the field
    assert html.count("not for commercial use") == 2
    assert "No model" in recommended_box(models, "en", "tlh")
    assert "<script>" not in recommended_box(models, "<script>", '"><script>')


def test_a_model_of_the_hub_is_added_with_consent(service: Service, models: BaseModels, hub: Path) -> None:
    token, offer = models.look_up(" https://huggingface.co/group/open ")
    assert (offer.card.license_name, offer.revision, offer.pickled, offer.local) == ("Apache 2.0", COMMIT, False, False)
    assert offer.bytes > 100_000
    assert service.store.jobs.list() == []  # nothing is fetched by looking
    job = models.add(token, agreed=False)  # its licence restricts nothing
    assert job.arguments == {"origin": "group/open", "revision": COMMIT, "name": "open", "convert": False}
    assert "Adding open" in jobs_box(models)
    with pytest.raises(InputError, match="Look it up again"):
        models.add(token, agreed=True)

    token, offer = models.look_up("group/research")
    assert offer.pickled
    assert offer.card.restricted
    with pytest.raises(InputError, match=r"research is for CC BY-NC 4\.0\. Tick"):
        models.add(token, agreed=False)
    assert models.add(token, agreed=True).arguments["convert"] is True
    assert service.catalog.accepted(offer.card, models.shelf.folder / "research")

    with pytest.raises(ModelError, match="no model group/nothing on the hub"):
        models.look_up("group/nothing")
    (hub / "config.json").write_text(json.dumps({"model_type": "t5"}), encoding="utf-8")
    with pytest.raises(ModelError, match="is a t5 model"):
        models.look_up("group/research")
    for job in models.jobs():
        models.act("cancel", job.id)
    assert jobs_box(models) == ""


def test_without_a_network_it_says_what_to_do(models: BaseModels) -> None:
    with pytest.raises(MissingError, match="hub does not answer"):
        models.look_up("Helsinki-NLP/opus-mt-en-de")


def test_a_folder_is_added_used_and_removed(service: Service, models: BaseModels, tiny: Path, tmp_path: Path) -> None:
    folder = one_way(tiny, tmp_path / "my-base")
    (folder / "README.md").write_text("# <b>Mine</b>\n\n| testset | BLEU |\n|---|---|\n| flores.en.zh | 31.4 |\n")
    assert add(service, models, str(folder)) == "my-base"
    project = service.create_project("Novels", "en", "zh", str(EN_ZH))
    added = next(base for base in models.installed(project) if base.name == "my-base")
    assert (added.usable, added.shipped, directions_text(added)) == (True, False, "English to Chinese")
    assert [(score.text, score.bleu) for score in added.scores] == [("encyclopaedic text", 31.4)]
    assert 'data-act="use" data-value="my-base"' in installed_box(models, project)
    with pytest.raises(InputError, match="a base my-base here already"):
        models.look_up(str(folder))

    assert default_pair(added.path) == ("en", "zh")
    with pytest.raises(InputError, match="does not translate from Chinese to English"):
        service.create_project("Wrong way", "zh", "en", added.path)
    models.use(project, "my-base", agreed=False)
    project = service.store.projects.get(project.id)
    assert project.base == added.path
    assert base_note(service, project) == ""
    with pytest.raises(InputError, match="in use and cannot be removed"):
        models.remove("my-base")
    models.use(project, "en-zh", agreed=True)
    assert models.remove("my-base") > 100_000
    assert [base.name for base in models.installed(None)] == ["de-en", "en-zh"]
    with pytest.raises(InputError, match="is bundled with the program"):
        models.remove("en-zh")


def test_a_project_with_plugins_keeps_its_base(service: Service, models: BaseModels, tiny: Path) -> None:
    name = add(service, models, str(tiny))
    project = service.create_project("Novels", "en", "zh", str(EN_ZH))
    service.store.plugins.create(project.id, "Style", method="lhuc", path="x.zip", base_fingerprint="", metrics={})
    assert not any(base.usable for base in models.installed(project))
    with pytest.raises(InputError, match="cannot be used for"):
        models.use(project, name, agreed=True)


def test_which_paths_may_be_read(tiny: Path, tmp_path: Path) -> None:
    def asked(text: str, **changes: object) -> None:
        settings = Settings(home=str(tmp_path / "home"), device="cpu").replace(**changes)
        BaseModels(Service(settings)).look_up(text)

    with pytest.raises(InputError, match="neither a hub id"):
        asked("../bases/tiny")
    with pytest.raises(InputError, match="Enter the hub id"):
        asked("  ")
    with pytest.raises(InputError, match="server_folders"):
        asked(str(tiny), server_folders=(str(tmp_path),))
    with pytest.raises(InputError, match="switched off"):
        asked(str(tiny), server_paths="off")
    asked(str(tiny), server_folders=(str(tiny.parent),))


def test_only_admins_add_and_remove(service: Service, models: BaseModels, tiny: Path) -> None:
    add(service, models, str(tiny))
    service.store.access = lambda: Actor("ann", role="member", user=1)
    for refused in (
        lambda: models.look_up(str(tiny)),
        lambda: models.add("x", agreed=True),
        lambda: models.remove(tiny.name),
        lambda: models.act("cancel", 1),
    ):
        with pytest.raises(Forbidden):
            refused()
    assert "data-ask" not in installed_box(models, None)
    assert 'data-act="look"' not in recommended_box(models, "en", "zh")
    assert jobs_box(models) == ""


def test_compare_and_translate_say_what_a_shipped_base_is_worth(service: Service) -> None:
    project = service.create_project("Novels", "en", "zh", str(EN_ZH))
    note = base_note(service, project)
    assert "en-zh is a demonstration model. Quality on news: " in note
    assert f'href="/bases?project={project.id}"' in note
    back = base_note(service, replace(project, source="zh", target="en"))
    assert back != note  # the figures are the direction's
    assert base_note(service, None) == ""
    with speaking("zh"):
        assert "en-zh 是演示模型" in base_note(service, project)


def test_the_form_of_a_new_project_says_so_too_in_the_direction_that_is_chosen(service: Service) -> None:
    form, base = NewProjectForm(service), str(EN_ZH)
    form.terms, form.agreed = "terms", "agreed"  # in place of components
    forward, back = (form.choose_languages(base, *pair)["terms"] for pair in (("en", "zh"), ("zh", "en")))
    assert "en-zh is a demonstration model. Quality on news: " in forward
    assert 'href="/bases"' in forward
    assert "Licence: " in forward
    assert back != forward


def test_the_first_page_starts_with_a_text_in_the_language_of_the_first_base(service: Service) -> None:
    corpus = first_sample(service)
    assert corpus is not None
    assert corpus.target == default_pair(first_base(service))[1]
    assert "data-start" in welcome(service)
    with pytest.raises(InputError, match="I accept these terms"):
        start_with_sample(service, agreed=False)
    assert service.store.projects.list() == []
    assert start_with_sample(service, agreed=True).name == corpus.title

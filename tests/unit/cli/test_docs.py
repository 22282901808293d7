"""The documents: pages that come from the code are up to date, links lead somewhere, printed commands can be typed."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from engine.base.decoding_options import Decoding
from engine.cli.commands import named
from engine.cli.main import parser
from engine.core.options import describe
from engine.core.settings import Settings, load_settings
from engine.decoding.translate import translate
from engine.methods import get_method, method_names
from engine.methods.data import Samples
from engine.methods.memory_adapter.config import MemoryAdapterConfig
from engine.training import TrainingOptions
from engine.workflows.customize.request import CustomizeRequest

ROOT = Path(__file__).resolve().parents[3]
SKIPPED = {".venv", ".git", "node_modules", "demo-out", "build", "dist"}
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if not any(p in SKIPPED or p.startswith(".") for p in path.relative_to(ROOT).parts)
)
OURS = [path for path in PAGES if path.parent == ROOT or path.is_relative_to(ROOT / "docs")]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SETTINGS = (Settings, CustomizeRequest, TrainingOptions, Decoding, MemoryAdapterConfig)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_settings", ROOT / "docs" / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    results = set()
    for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        results.add(plain.replace(" ", "-"))
    return results


def test_pages_made_from_the_code_are_up_to_date(maker: ModuleType) -> None:
    for path, text in maker.pages().items():
        assert path.exists(), f"{path} is missing: run python docs/make_settings.py"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: run python docs/make_settings.py"


@pytest.mark.parametrize("cls", SETTINGS, ids=lambda cls: cls.__name__)
def test_every_setting_is_documented_with_its_help(cls: type) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for item in describe(cls):
        row = next((line for line in page.splitlines() if line.startswith(f"| `{item.name}` |")), None)
        assert row is not None, f"{cls.__name__}.{item.name} is not in docs/settings.md"
        assert " ".join(item.help.split()).replace("|", "\\|") in page


def test_every_command_and_flag_is_documented(maker: ModuleType) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    names = [name for name, _, _ in maker.commands(parser())]
    assert "customize" in names
    assert "plugin export" in names
    for name, _, result in maker.commands(parser()):
        assert f"\n## tailormt {name}\n" in page
        section = page.split(f"\n## tailormt {name}\n")[1].split("\n## ")[0]
        everywhere = page.split("\n## Every command\n")[1].split("\n## ")[0]
        for action in result._actions:
            for flag in set(action.option_strings) - {"-h", "--help"}:
                assert f"`{flag}`" in section + everywhere, f"{name} {flag}"


def test_every_command_has_its_function(maker: ModuleType) -> None:
    for name, _, result in maker.commands(parser()):
        assert callable(named(f"cli.{result.get_default('run')}")), name


def test_every_method_has_a_card_with_all_its_settings() -> None:
    for name in method_names():
        card = ROOT / "docs" / "methods" / f"{name}.md"
        assert card.exists(), f"{name} has no card: write {card}"
        text = card.read_text(encoding="utf-8")
        assert get_method(name).capabilities.source.split(",")[0] in text
        for item in describe(get_method(name).config_class):
            assert f"| `{item.name}` |" in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{path.relative_to(ROOT)} links to {link}, which is not there"
        assert target.is_relative_to(ROOT), f"{path.relative_to(ROOT)} links out of the project: {link}"
        if anchor:
            assert anchor in anchors(target), f"{path.relative_to(ROOT)} links to {link}; there is no such heading"


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_printed_commands_are_understood(path: Path) -> None:
    for block in FENCE.findall(path.read_text(encoding="utf-8")):
        text = re.sub(r"\\\n\s*", " ", block)
        for line in re.findall(r"^\$? ?(?:\.venv/bin/)?(tailormt .+)$", text, re.MULTILINE):
            assert typed(line) == 0, f"{path.relative_to(ROOT)}: {line} cannot be typed"


def typed(line: str) -> object:
    """The exit code of a command line whose arguments are only read."""
    try:
        parser().parse_args(shlex.split(line, comments=True)[1:])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_make_targets_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for path in OURS:
        for target in re.findall(r"(?:`|^|\$ )make ([a-z]+)\b(?=`|\s*$|\s+#)", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert target in targets, f"{path.relative_to(ROOT)} names make {target}"


def test_the_readme_names_every_method() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in method_names():
        assert f"docs/methods/{name}.md" in readme


@pytest.mark.slow
def test_the_example_method_learns_and_leaves_the_base_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three files printed in add-a-method.md, as they stand."""
    import torch

    from engine.base import LanguagePair
    from engine.core.progress import Progress
    from engine.methods.batches import Pairs
    from engine.training.loop import Trainer

    page = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    files = re.findall(r"`(vocabulary_bias/\w+\.py)`\n\n```python\n(.*?)```", page, re.DOTALL)
    assert len(files) == 3
    (tmp_path / "vocabulary_bias").mkdir()
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    method = importlib.import_module("vocabulary_bias.method").VocabularyBiasMethod()

    samples = ROOT / "assets" / "samples"
    lines = (samples / "literary-zh" / "literary-zh.txt").read_text(encoding="utf-8").splitlines()[:48]
    english = (samples / "demo.en.txt").read_text(encoding="utf-8").splitlines()
    pair = LanguagePair.load(ROOT / "assets" / "models" / "en-zh", "en", "zh", device="cpu")
    base, config = pair.forward, method.config_class()
    before = translate(base, english[:12])
    torch.manual_seed(1)
    samples_of = Samples(pair, [], [], tmp_path, load_settings())
    module = method.build(base, method.prepare(samples_of, config, Progress()), config)
    with method.attach(base, module):
        assert translate(base, english[:12]) == before  # the identity at the start
    pairs = Pairs.encode(base, [(english[i % 12], line) for i, line in enumerate(lines)])
    options = TrainingOptions(max_updates=6, tokens_per_batch=512, learning_rate=0.05, warmup=1, validate_every=6)
    result = Trainer(base, method, module, pairs, pairs, options, tmp_path / "training").run()
    assert result.best_loss < result.first_loss - 0.05
    assert result.parameters == base.model.config.vocab_size
    with method.attach(base, module):
        assert translate(base, english[:12]) != before
    with method.attach(base, module, 0.0):
        assert translate(base, english[:12]) == before
    assert translate(base, english[:12]) == before

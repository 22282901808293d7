"""COMET by a program of its own. Its real models do not run here: a stand-in takes the program's flags and writes its file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.errors import Cancelled, InputError, MissingError, TailorError
from engine.evaluation.comet import Comet
from engine.evaluation.evaluate import ExtraMetrics, evaluate

# As unbabel-comet 2.2.7 has it: comet/cli/score.py. A line's score is the share of the reference's (or source's) words in it.
STAND_IN = """#!{python}
import argparse, json, os, pathlib, sys, time
flags = argparse.ArgumentParser()
for short, long in (("-s", "--sources"), ("-r", "--references")):
    flags.add_argument(short, long)
flags.add_argument("-t", "--translations", nargs="+")
flags.add_argument("--gpus", type=int, default=1)
flags.add_argument("--quiet", action="store_true")
flags.add_argument("--only_system", action="store_true")
flags.add_argument("--to_json", default="")
flags.add_argument("--model")
given = flags.parse_args()
assert os.environ["HF_HUB_OFFLINE"] == "1" and given.gpus == 0
wish = pathlib.Path(given.model).read_text()
if wish == "wait":
    pathlib.Path(given.model).with_name("begun").touch()
    time.sleep(600)
if wish == "fail":
    print("Traceback ...", file=sys.stderr)
    sys.exit("RuntimeError: the checkpoint is of another kind")
read = lambda file: [line.strip() for line in open(file, encoding="utf-8").readlines()]
rights = read(given.references or given.sources)
share = lambda line, right: len(set(line.split()) & set(right.split())) / max(1, len(set(right.split())))
json.dump(
    {{
        file: [{{"mt": line, "COMET": share(line, right)}} for line, right in zip(read(file), rights)]
        for file in given.translations
    }},
    open(given.to_json, "w", encoding="utf-8"),
)
"""
SOURCES = ["the rain stopped", "he said nothing", "the road is long"]
REFERENCES = ["the rain has stopped", "he said nothing", "the road was long"]
SYSTEMS = {"vanilla": ["rain stopped", "he said\u2028nothing", "a road"], "ours": list(REFERENCES)}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With a checkpoint as the hub's cache has it, and the program's stand-in."""
    folder = tmp_path / "hub/models--Unbabel--wmt22-comet-da/snapshots/1a2b"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints/model.ckpt").write_text("score")
    (folder / "hparams.yaml").write_text("activations: Tanh\nclass_identifier: regression_metric\n")
    program = tmp_path / "comet-score"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    return Settings(comet=str(folder / "checkpoints/model.ckpt"), comet_program=str(program), device="cpu")


def test_comet_has_interval_and_p_like_the_other_figures(settings: Settings) -> None:
    further = ExtraMetrics(sources=SOURCES, comet=Comet.of(settings))
    report = evaluate(SYSTEMS, REFERENCES, language="en", baseline="vanilla", samples=100, further=further)
    before, after = report["vanilla"].comet, report["ours"].comet
    assert before is not None
    assert after is not None
    assert after.score == after.low == after.high == 100
    assert before.score == pytest.approx(100 * (2 / 4 + 1 + 1 / 4) / 3)
    assert before.low < before.score < before.high
    assert after.p is not None
    assert after.p < 0.05
    assert report.signatures["COMET"] == "comet-score|model:Unbabel/wmt22-comet-da|x100"
    assert "COMET [95 % interval]" in report.table()
    assert type(report).from_mapping(json.loads(json.dumps(report.to_mapping()))) == report


def test_without_sources_or_references_that_the_model_wants_it_is_left_out(settings: Settings) -> None:
    comet = Comet.of(settings)
    report = evaluate(SYSTEMS, REFERENCES, language="en", samples=100, further=ExtraMetrics(comet=comet))
    assert report["ours"].comet is None
    with pytest.raises(InputError, match="nothing to score against"):
        evaluate(SYSTEMS, None, language="en", samples=100, further=ExtraMetrics(sources=SOURCES, comet=comet))
    Path(settings.comet).parent.parent.joinpath("hparams.yaml").write_text("class_identifier: unified_metric\n")
    free = ExtraMetrics(sources=SOURCES, comet=Comet.of(settings))
    figure = evaluate(SYSTEMS, None, language="en", samples=100, further=free)["ours"].comet
    assert figure is not None
    assert figure.score == pytest.approx(100 * (1 + 1 + 3 / 4) / 3)


def test_the_command_line_gives_it(settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {}
    for name, lines in {"sources": SOURCES, "reference": REFERENCES, "ours": REFERENCES}.items():
        files[name] = tmp_path / f"{name}.txt"
        files[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    flags = [
        "evaluate", f"ours={files['ours']}", "--reference", str(files["reference"]), "--sources", str(files["sources"]),
        "--target", "en", "--json", "--comet", settings.comet, "--comet-program", settings.comet_program,
    ]  # fmt: skip
    assert main(flags) == 0
    assert json.loads(capsys.readouterr().out)["systems"][0]["comet"]["score"] == 100
    assert main([*flags[:-3], str(tmp_path / "none.ckpt")]) == 2
    assert "not a COMET checkpoint" in capsys.readouterr().err


def test_what_is_missing_or_fails_is_one_sentence(settings: Settings, tmp_path: Path) -> None:
    assert Comet.of(Settings()) is None
    with pytest.raises(MissingError, match="pip install unbabel-comet"):
        Comet.of(settings.replace(comet_program="no-such-program"))
    with pytest.raises(InputError, match=r"hparams\.yaml"):
        Comet.of(settings.replace(comet=str(tmp_path / "comet-score")))
    Path(settings.comet).write_text("fail")
    comet = Comet.of(settings)
    assert comet is not None
    with pytest.raises(TailorError, match="comet-score ended with 1: RuntimeError: the checkpoint is of another kind"):
        comet.scores(SYSTEMS, SOURCES, REFERENCES, Progress())


def test_it_ends_when_the_user_stops(settings: Settings) -> None:
    Path(settings.comet).write_text("wait")
    comet, begun = Comet.of(settings), Path(settings.comet).with_name("begun")
    assert comet is not None

    class Stopped(Progress):
        def check(self) -> None:
            if begun.exists():
                raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        comet.scores(SYSTEMS, SOURCES, REFERENCES, Stopped())

"""A row of a paper's experiment: its plugin is made, its text translated and scored, and the row stored so that it is made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.base.decoding_options import Decoding
from engine.core.atomic_files import atomic_write, read_json, read_jsonl, write_json
from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.step_cache import content_hash
from engine.errors import Cancelled, TailorError
from engine.workflows.benchmark.experiments import Experiment, Variant
from engine.workflows.benchmark.methods import KNN, VANILLA, costs, decoding_flags, hand_down, samples_file, tailormt
from engine.workflows.benchmark.tasks import TASKS, BenchmarkTask, base_digest, dev_sentences, load_task

COSTS = ("seconds", "parameters", "peak_gib", "training")
# A time limit would make figures depend on the machine's load.
NO_CLOCK = ("--training-option", "max_minutes=none")


@dataclass(frozen=True)
class Scale:
    """The size of an experiment: number of random samples (0: all), lines of each text (0: all), and the training budget."""

    sentences: int
    lines: int
    budget: str


@dataclass(frozen=True)
class Plan:
    """`folder` contains one folder per task, `data` the texts; `base` is a folder, or empty for the default."""

    data: Path
    folder: Path
    scale: Scale
    base: str = ""
    seed: int = 1


@dataclass(frozen=True)
class BenchmarkRow:
    """`variant` of `experiment` on `task`, run according to `plan`."""

    task: str
    variant: Variant
    experiment: Experiment
    plan: Plan
    progress: Progress

    def load_or_make(self) -> Json:
        """The row from its file if stored, else newly made; if it fails, "error" contains the message. Raises Cancelled."""
        selected = self.folder / f"{self.stem}.{self.experiment.text}.row.json"
        row = read_json(selected)
        lacks = set(self.experiment.measures) & ({"classifier", "perplexity"} | self.owns) - set(row.get("found", ()))
        if row and "error" not in row and not lacks:
            return {**row, "bundle": str(self.bundle)}
        # The costs of making the plugin are kept if only a measure is missing.
        row = {**{name: row[name] for name in COSTS if name in row}, **self.inputs, "found": {}}
        try:
            files = self.files
            if self.experiment.text == "dev":
                files = {**files, **self.dev_files()}
            if self.variant.system != VANILLA and not self.bundle.exists():
                row |= self.customize()
            row["valid_loss"] = valid_losses(self.workspace)  # also of a plugin made by another experiment
            self.score(row, files)
            for measure in sorted(self.owns):
                row["found"][measure] = self.own_share(measure.partition("@")[2])
        except Cancelled:
            raise
        except TailorError as error:
            row["error"] = str(error)
        write_json(selected, row, "the experiment's row")
        return {**row, "bundle": str(self.bundle)}

    # -- names and paths

    @cached_property
    def inputs(self) -> dict[str, object]:
        """The inputs of the row, which identify it."""
        variant, scale = self.variant, self.plan.scale
        inputs: dict[str, object] = {
            "system": variant.system, "flags": list(variant.flags), "sentences": variant.sentences or scale.sentences,
            "lines": scale.lines, "budget": scale.budget, "base": self.plan.base, "seed": self.plan.seed,
            "base_digest": base_digest(self.plan.base, self.spec.source, self.spec.target),
        }  # fmt: skip
        if variant.system != VANILLA:  # only if set, so that rows without it keep their names
            inputs |= {"learn": list(variant.learn)} if variant.learn else {}
            inputs |= {"swap": True} if variant.swap else {}
            inputs |= {"pairs": True} if self.experiment.pairs else {}
        return inputs

    @cached_property
    def stem(self) -> str:
        return f"{self.variant.system}-{content_hash(self.inputs)[:10]}"

    @property
    def spec(self) -> BenchmarkTask:
        return TASKS[self.task]

    @property
    def pair(self) -> list[str]:
        """Direction and base as flags."""
        base = ["--base", self.plan.base] if self.plan.base else []
        return ["--source", self.spec.source, "--target", self.spec.target, *base]

    @property
    def folder(self) -> Path:
        """The folder of the row and its output."""
        return self.plan.folder / self.task

    @property
    def learnt(self) -> Path:
        """The folder of the plugin: one that learns from other tasks is made once for all rows."""
        return self.plan.folder / "+".join(self.variant.learn or (self.task,))

    @property
    def trained(self) -> Path:
        """The trained plugin, shared by the row that swaps its samples afterwards and the one that does not."""
        inputs = {key: value for key, value in self.inputs.items() if key != "swap"}
        return self.learnt / f"{self.variant.system}-{content_hash(inputs)[:10]}.zip"

    @property
    def workspace(self) -> Path:
        return self.trained.with_suffix(".workspace")

    @property
    def bundle(self) -> Path:
        return self.folder / f"{self.stem}.zip" if self.variant.swap else self.trained

    @property
    def owns(self) -> set[str]:
        """The requested measures of domain proportions; empty for plugins without proportions."""
        mixing = self.variant.system == "domain_mixing"
        return {measure for measure in self.experiment.measures if measure.startswith("own@")} if mixing else set()

    @cached_property
    def files(self) -> dict[str, Path]:
        return self.texts(self.task)

    def texts(self, task: str) -> dict[str, Path]:
        """A task's texts in its own folder, at the planned scale. Raises InputError if the data is missing."""
        scale = self.plan.scale
        folder = self.plan.folder / task
        return load_task(task, self.plan.data, folder, sentences=scale.sentences, lines=scale.lines, seed=self.plan.seed)[1]

    def samples(self, task: str) -> Path:
        """The file of samples to learn from. Raises InputError if pairs are requested and there are none."""
        result = self.files if task == self.task else self.texts(task)
        if self.variant.sentences:
            # Taken from the same order, so that larger samples contain the smaller ones.
            folder = self.plan.folder / task / f"samples.{self.variant.sentences}"
            result = load_task(task, self.plan.data, folder, sentences=self.variant.sentences, lines=1, seed=self.plan.seed)[1]
        return samples_file(TASKS[task], result, pairs=self.experiment.pairs)

    # -- the steps

    def customize(self) -> Json:
        """Make the plugin, and give it the task's samples if the variant requires it."""
        row: Json = {}
        if not self.trained.exists():
            row = self.train(self.trained)
        if self.variant.swap:
            base = self.pair[4:]
            tailormt(
                self.progress, "plugin", "swap", str(self.trained), "--samples", str(self.samples(self.task)), *base,
                "-o", str(self.bundle),
            )  # fmt: skip
        return row

    def train(self, output: Path) -> Json:
        """Run `tailormt customize` on the plugin's samples."""
        variant = self.variant
        tasks = variant.learn or (self.task,)
        samples = [str(self.samples(task)) for task in tasks]
        if not variant.sentences and not any("phrase-option" in flag for flag in variant.flags):
            hand_down(self.learnt, self.workspace)
        domains = ["--domains", *tasks] if len(tasks) > 1 else []
        knn = ["--knn"] if variant.system.endswith(KNN) else []
        result, _, peak = tailormt(
            self.progress, "customize", *self.pair, "--samples", *samples, *domains, "--method",
            variant.system.removesuffix(KNN), *knn, *NO_CLOCK, *variant.flags, "--budget", self.plan.scale.budget,
            "--workspace", str(self.workspace), "-o", str(output),
        )  # fmt: skip
        return costs(result, peak)

    def score(self, row: Json, files: Mapping[str, Path]) -> None:
        """Translate the text and score it, against vanilla if its translation exists."""
        text, variant = self.experiment.text, self.variant
        styled = bool({"classifier", "perplexity"} & set(self.experiment.measures))
        output = self.folder / f"{self.stem}.{text}.txt"
        bundle = [] if variant.system == VANILLA else ["--plugin", str(self.bundle)]
        decoding = decoding_flags(Decoding().to_mapping())
        source = str(files[f"{text}.source"])
        tailormt(self.progress, "translate", *self.pair, *bundle, *decoding, source, "-o", str(output))
        vanilla = self.folder / f"{VANILLA}-{content_hash(row['lines'], row['base'])[:10]}.{text}.txt"
        if variant.system == VANILLA:
            with atomic_write(vanilla, "the translations") as temporary:
                temporary.write_bytes(output.read_bytes())
        against = [f"{VANILLA}={vanilla}"] if variant.system != VANILLA and vanilla.exists() else []
        samples = ["--samples", str(files["samples"])] if styled else []
        report, _, _ = tailormt(
            self.progress, "evaluate", *against, f"{variant.label.replace('=', ' ')}={output}", "--reference",
            str(files[f"{text}.target"]), *self.pair, *samples, "--no-ter",
        )  # fmt: skip
        system = report["systems"][-1]
        row["found"] |= {name: system[name]["score"] for name in ("bleu", "chrf", "perplexity", "classifier") if system.get(name)}
        row["p"] = system["bleu"].get("p")
        row["signatures"] = report["signatures"]
        if row.get("valid_loss"):
            row["found"]["valid_loss"] = min(loss for _, loss in row["valid_loss"])

    def own_share(self, side: str) -> float:
        """The mean proportion of the task's own domain over the words of held-out sentences."""
        column = 1 if side == "encoder" else 0
        sentences = dev_sentences(self.task, self.plan.data, column=column)[: self.plan.scale.lines or None]
        text = self.folder / f"own.{side}.txt"
        text.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        result, _, _ = tailormt(
            self.progress, "proportions", *self.pair, "--plugin", str(self.bundle), "--input", str(text), "--side", side
        )
        index = result["domains"].index(self.task)
        shares = [word["proportions"][index] for sentence in result["sentences"] for word in sentence["words"]]
        return sum(shares) / max(1, len(shares))

    def dev_files(self) -> dict[str, Path]:
        """Held-out sentences of the style, with their machine translations as sources, as in paper 1."""
        spec = self.spec
        target, source = self.folder / f"dev.{spec.target}.txt", self.folder / f"dev.{spec.source}.txt"
        text = "".join(f"{sentence}\n" for sentence in dev_sentences(self.task, self.plan.data)[: self.plan.scale.lines or None])
        if not target.exists() or target.read_text(encoding="utf-8") != text or not source.exists():
            target.write_text(text, encoding="utf-8")
            back = ["--source", spec.target, "--target", spec.source, *self.pair[4:]]
            tailormt(self.progress, "translate", *back, str(target), "-o", str(source))
        return {"dev.source": source, "dev.target": target}


def valid_losses(workspace: Path) -> list[list[float]]:
    """(update, loss on held-out samples) of each validation of the training."""
    rows = (row for file in sorted(workspace.glob("**/metrics.jsonl")) for row in read_jsonl(file))
    return [[float(row["step"]), float(row["valid_loss"])] for row in rows if "valid_loss" in row]

"""COMET (Rei et al., 2020) by Unbabel's `comet-score`, in a separate process and environment.

Its checkpoints are pickles, and its library needs an older transformers than this program, so neither is loaded here. A user who
sets `comet` chooses to trust that file and that program.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.core.devices import pick_device
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.subprocesses import last_line, run_program
from engine.errors import InputError, MissingError, TailorError

# The encoder's tokenizer is read from the hub's cache next to the checkpoint, without unrequested network access.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
ALONE = ("referenceless_regression_metric", "unified_metric", "xcomet_metric")  # these can score without references


@dataclass(frozen=True)
class Comet:
    """A checkpoint on disk, the program that scores with it, whether it may use a GPU, and whether it needs references."""

    checkpoint: Path
    program: str
    gpu: bool = False
    needs_references: bool = True

    @classmethod
    def of(cls, settings: Settings) -> Comet | None:
        """Created from the settings `comet` and `comet_program`; None if no checkpoint is set.

        Raises InputError if the checkpoint is missing, MissingError if the program is.
        """
        if not settings.comet:
            return None
        checkpoint = Path(settings.comet).expanduser().resolve()
        hparams = checkpoint.parent.parent / "hparams.yaml"
        if checkpoint.suffix != ".ckpt" or not checkpoint.is_file() or not hparams.is_file():
            raise InputError(
                "comet: {comet} is not a COMET checkpoint. Specify the file checkpoints/model.ckpt of a "
                "model on disk, with hparams.yaml in the folder above, or leave the setting empty.",
                comet=settings.comet,
            )
        program = shutil.which(str(Path(settings.comet_program).expanduser()))
        if program is None:
            raise MissingError(
                "comet_program: there is no {comet_program}. COMET needs an environment of its own: python -m venv "
                "comet; comet/bin/pip install unbabel-comet; then set comet_program to comet/bin/comet-score.",
                comet_program=settings.comet_program,
            )
        alone = re.search(rf"^class_identifier:\s*({'|'.join(ALONE)})\s*$", hparams.read_text(encoding="utf-8"), re.MULTILINE)
        gpu = pick_device(settings.device).type == "cuda"
        return cls(checkpoint, str(Path(program).absolute()), gpu, needs_references=alone is None)

    @property
    def signature(self) -> str:
        """The model by its name on the hub if its path contains one, else by its folder."""
        hub = [part.removeprefix("models--").replace("--", "/") for part in self.checkpoint.parts if part[:8] == "models--"]
        return f"comet-score|model:{hub[-1] if hub else self.checkpoint.parent.parent.name}|x100"

    def scores(
        self, systems: Mapping[str, Sequence[str]], sources: Sequence[str], references: Sequence[str] | None, progress: Progress
    ) -> dict[str, list[float]]:
        """Scores of each system's lines by system name, times 100 (about 0 to 100, higher is better).

        All systems are scored in one process, so that the model is loaded once. Raises TailorError with the program's last line if
        it fails, Cancelled.
        """
        with tempfile.TemporaryDirectory(prefix="comet-") as scratch:
            folder = Path(scratch)
            files = [f"system.{number}.txt" for number in range(len(systems))]
            for file, lines in zip(files, systems.values(), strict=True):
                put_lines(folder / file, lines)
            put_lines(folder / "source.txt", sources)
            right = []
            if references is not None:
                put_lines(folder / "reference.txt", references)
                right = ["-r", "reference.txt"]
            command = [
                self.program, "-s", "source.txt", "-t", *files, *right, "--model", str(self.checkpoint), "--gpus",
                str(int(self.gpu)), "--quiet", "--only_system", "--to_json", "scores.json",
            ]  # fmt: skip
            status, _, err = run_program(command, progress, folder=folder, environment=OFFLINE)
            if status:
                raise TailorError("comet-score ended with {status}: {last_line}", status=status, last_line=last_line(err)[:300])
            try:
                data = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
                by_file = [[100 * float(line["COMET"]) for line in data[file]] for file in files]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise TailorError(
                    "comet-score wrote no readable scores ({name}). Try version 2.2.", name=type(error).__name__
                ) from None
        for file, numbers in zip(files, by_file, strict=True):
            if len(numbers) != len(sources):
                raise TailorError(
                    "comet-score gave {scores:,} scores for {lines:,} lines of {file}.",
                    scores=len(numbers), lines=len(sources), file=file,
                )  # fmt: skip
        return dict(zip(systems, by_file, strict=True))


def put_lines(path: Path, lines: Sequence[str]) -> None:
    """Write one sentence per line; line breaks within a sentence become spaces."""
    path.write_text("".join(" ".join(line.splitlines()) + "\n" for line in lines), encoding="utf-8")

"""The samples of a project, as stored in its folder: files, domain labels, reading settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.core.atomic_files import read_json
from engine.core.json_object import Json
from engine.corpora.types import CorpusOptions
from engine.errors import OptionError

SAMPLES = "samples"  # folder of the sample files, in a project's folder
LABELS = "domains.json"  # domain labels by file name, in the same folder
OPTIONS = "import_options.json"  # reading settings that differ from the defaults, in the same folder


def sample_files(workspace: Path) -> list[Path]:
    """The sample files of a project, sorted by name."""
    return sorted(path for path in (workspace / SAMPLES).glob("*") if path.is_file() and not path.name.startswith("."))


def domain_labels(workspace: Path) -> dict[str, str]:
    """Domain labels assigned to files of a project, by file name; the label of other files is their name."""
    return {str(name): str(label) for name, label in read_json(workspace / LABELS).items()}


def reading_options(workspace: Path) -> Json:
    """Reading settings that differ from the defaults."""
    data = read_json(workspace / OPTIONS)
    try:
        CorpusOptions.from_mapping(data)
    except OptionError:  # written by another version
        return {}
    return data


def held_samples(workspace: Path) -> Json:
    """The current samples, as fields of `CustomizeRequest`."""
    files, labels = sample_files(workspace), domain_labels(workspace)
    values: Json = {"samples": [str(path) for path in files]}
    if labels:
        values["domains"] = [labels.get(path.name, "") for path in files]
    if options := reading_options(workspace):
        values["corpus_options"] = options
    return values


def are_held(samples: Iterable[str], project_id: int | None) -> bool:
    """Whether these files are in the project's folder, here or on the machine where a job was queued."""
    folder = ("projects", str(project_id), SAMPLES)
    return all(Path(sample).parts[-4:-1] == folder for sample in samples)

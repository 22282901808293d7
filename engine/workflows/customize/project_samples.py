"""The samples of a project as its folder holds them: files, domain labels, settings of reading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.core.atomic_files import read_json
from engine.core.json_object import Json
from engine.corpora.types import CorpusOptions
from engine.errors import OptionError

SAMPLES = "samples"  # in a project's folder: the folder of the sample files
LABELS = "domains.json"  # there too: domain labels by file name
OPTIONS = "import_options.json"  # there too: settings of reading that differ from the defaults


def sample_files(workspace: Path) -> list[Path]:
    """The sample files of a project, by name."""
    return sorted(path for path in (workspace / SAMPLES).glob("*") if path.is_file() and not path.name.startswith("."))


def domain_labels(workspace: Path) -> dict[str, str]:
    """Domain labels that were given to files of a project, by file name; others have their file's name."""
    return {str(name): str(label) for name, label in read_json(workspace / LABELS).items()}


def reading_options(workspace: Path) -> Json:
    """Settings of reading that differ from the defaults."""
    data = read_json(workspace / OPTIONS)
    try:
        CorpusOptions.from_mapping(data)
    except OptionError:  # written by another version
        return {}
    return data


def held_samples(workspace: Path) -> Json:
    """The samples as they are now, as fields of `CustomizeRequest`."""
    files, labels = sample_files(workspace), domain_labels(workspace)
    given: Json = {"samples": [str(path) for path in files]}
    if labels:
        given["domains"] = [labels.get(path.name, "") for path in files]
    if options := reading_options(workspace):
        given["corpus_options"] = options
    return given


def are_held(samples: Iterable[str], project_id: int | None) -> bool:
    """Whether these are files of the project's folder, here or on the machine on which a job was queued."""
    folder = ("projects", str(project_id), SAMPLES)
    return all(Path(sample).parts[-4:-1] == folder for sample in samples)

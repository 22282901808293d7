"""Getting a base's files into a folder: copied from another folder or fetched from the hub, then verified by loading it."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from engine.base.families import family_of
from engine.base.files import PICKLED, WEIGHTS, check_type, read_config
from engine.base.metadata import read_card
from engine.core.model_card import ModelCard, read_card_file
from engine.core.progress import Progress
from engine.errors import MissingError, ModelError, StorageError, TailorError, first_line

# The files that a base needs besides its weights; others in a folder or repository (other frameworks' weights, code) are
# ignored.
SMALL = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "tokenizer.json", "vocab.json", "target_vocab.json", "*.spm", "sentencepiece.bpe.model", "README.md", "LICENSE*",
)  # fmt: skip
NEEDED = "config.json, model.safetensors, tokenizer_config.json and the tokenizer's own files"
BLOCK = 1 << 22
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


def files_to_download(names: Iterable[str], where: str, convert: bool) -> list[str]:
    """The files of a base among the given names. Raises ModelError if there are no acceptable weights."""
    names = sorted(names)
    if "config.json" not in names:
        raise ModelError("{where} is not a model: it has no config.json. Specify a transformers translation model.", where=where)
    small = [name for name in names if any(fnmatch(name, pattern) for pattern in SMALL)]
    if WEIGHTS[0] in names:
        return [*small, WEIGHTS[0]]
    if WEIGHTS[1] in names:
        return [*small, WEIGHTS[1], *(name for name in names if fnmatch(name, "model-*-of-*.safetensors"))]
    pickled = [name for name in names if fnmatch(name, "pytorch_model*.bin") or name == PICKLED[1]]
    if pickled and convert:
        return [*small, *pickled]
    if pickled:
        raise ModelError(
            "{where} has only pickled weights ({pickled}), which can run code when they are loaded. Run `tailormt "
            "base add {where} --convert` to read them without running anything and keep model.safetensors.",
            where=where,
            pickled=pickled[0],
        )
    raise ModelError("{where} has no weights: model.safetensors is missing.", where=where)


@dataclass(frozen=True)
class Offer:
    """A base that could be added: its hub id or folder, the hub's commit, its card, the files to be fetched or copied."""

    origin: str
    revision: str
    card: ModelCard
    files: dict[str, int]  # {name: bytes}
    local: bool

    @property
    def bytes(self) -> int:
        """The total size of its files."""
        return sum(self.files.values())

    @property
    def pickled(self) -> bool:
        """Whether its weights are a pickle, which is read as weights only and stored as safetensors."""
        return not any(name in WEIGHTS for name in self.files)


def look_at_folder(folder: Path) -> Offer:
    """Describe the base in a folder without copying anything. Raises ModelError if it is not a base."""
    check_type(read_config(folder, weights=False)["model_type"], folder.resolve().name)
    names = files_to_download((file.name for file in folder.iterdir() if file.is_file()), str(folder), convert=True)
    sizes = {name: (folder / name).stat().st_size for name in names}
    return Offer(str(folder.resolve()), "", read_card_file(folder), sizes, local=True)


def look_up(name: str, revision: str = "") -> Offer:
    """Describe a model on the hub: its licence, its files, their sizes. Fetches no file.

    This is a network call, which the user asked for. Raises as `download`.
    """
    with hub_errors(name, revision, Path(name.rpartition("/")[2])):
        info, sizes = _described(name, revision)
        kind = (info.config or {}).get("model_type")
        if kind:
            check_type(kind, name)
        names = files_to_download(sizes, name, convert=True)
        card_data = info.card_data.to_dict() if info.card_data else {}
        licence = card_data.get("license") or ""
        card = ModelCard(
            title=name,
            license=", ".join(licence) if isinstance(licence, list) else str(licence),
            metadata={key: str(card_data[key]) for key in ("license_name", "license_link") if card_data.get(key)},
        )
        return Offer(name, str(info.sha), card, {file: sizes[file] for file in names}, local=False)


def _described(name: str, revision: str) -> tuple[Any, dict[str, int]]:
    """The hub's description of a model, and the sizes in bytes of its top-level files."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(name, revision=revision or None, files_metadata=True, timeout=20)
    return info, {item.rfilename: item.size or 0 for item in info.siblings or () if "/" not in item.rfilename}


def size_text(size: float) -> str:
    """Bytes in human-readable form: 24.3 MiB, 4.6 GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def check_space(folder: Path, needed: int) -> None:
    """Raise StorageError if the folder's disk has fewer free bytes."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            "The base needs {needed} and the disk of {folder} has {free} left. Free some space, or set "
            "TAILORMT_HOME to a folder on a larger disk.",
            needed=size_text(needed), folder=folder.parent, free=size_text(free),
        )  # fmt: skip


def copy(folder: Path, staging: Path, convert: bool, progress: Progress) -> None:
    """Copy a base's files from a folder. Raises ModelError if it is not a base, StorageError if the disk is full."""
    check_type(read_config(folder, weights=False)["model_type"], folder.resolve().name)
    names = files_to_download((file.name for file in folder.iterdir() if file.is_file()), str(folder), convert)
    total = sum((folder / name).stat().st_size for name in names)
    done = 0
    check_space(staging, total)
    progress.begin("Copying the base", 0, 2)
    for name in names:
        with (folder / name).open("rb") as source, (staging / name).open("wb") as out:
            while block := source.read(BLOCK):
                out.write(block)
                done += len(block)
                progress.advance(done, total, size_text(total))


def download(name: str, revision: str, staging: Path, convert: bool, progress: Progress) -> str:
    """Fetch a base's files from the hub; returns their commit.

    This is a network call, which the user asked for. Raises MissingError without a connection (saying which files to put
    where), ModelError if the repository is missing, not accessible or not a base.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import disable_progress_bars

    progress.begin("Fetching the base", 0, 2)
    disable_progress_bars()
    with hub_errors(name, revision, staging.parent / name.rpartition("/")[2]):
        info, sizes = _described(name, revision)
        names = files_to_download(sizes, name, convert)
        total, done = sum(sizes[file] for file in names), 0
        check_space(staging, total)
        for file in names:
            hf_hub_download(name, file, revision=info.sha, local_dir=staging, tqdm_class=bar(progress, done, total))
            done += sizes[file]
            progress.advance(done, total, size_text(total))
    shutil.rmtree(staging / ".cache", ignore_errors=True)  # the hub client's metadata on its downloads
    return str(info.sha)


@contextlib.contextmanager
def hub_errors(name: str, revision: str, folder: Path) -> Iterator[None]:
    """Report errors of the hub in one sentence; `folder` is where the base's files belong.

    Raises ModelError, or MissingError without a connection. Other errors (TailorError, those of the disk) pass through.
    """
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except GatedRepoError:
        raise ModelError(
            "The model {name} asks for its licence to be accepted first: do that on its page on the hub, then log "
            "in with `hf auth login` and run this again.",
            name=name,
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            "The model {name} has no revision {revision}. Specify a branch, tag or commit that it has.",
            name=name,
            revision=revision,
        ) from None
    except RepositoryNotFoundError:
        raise ModelError("There is no model {name} on the hub, or it is private. Check the spelling.", name=name) from None
    except TailorError:
        raise
    except Exception as error:  # the hub's client and its libraries raise many types for the same problem
        if isinstance(error, OSError) and error.errno in OF_THE_DISK:
            raise
        raise offline(name, folder, error) from error


def offline(name: str, folder: Path, error: Exception) -> MissingError:
    """The error for a machine without a connection; `folder` is where the base's files belong."""
    return MissingError(
        "The base {name} could not be fetched: the hub does not answer ({error}). On a machine with a connection "
        "run `hf download {name} --local-dir FOLDER`, bring the folder here and run `tailormt base add FOLDER`; or "
        "copy its files ({needed}) into {folder}.",
        name=name, error=type(error).__name__, needed=NEEDED, folder=folder,
    )  # fmt: skip


def bar(progress: Progress, before: int, total: int) -> type:
    """A tqdm class for the hub's client that reports the bytes of one file to `progress`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": True})
            self.seen = 0.0

        def update(self, n: float | None = 1) -> bool | None:
            self.seen += n or 0
            progress.advance(min(total, before + self.seen), total, size_text(total))
            return None

    return Bar


def convert_weights(folder: Path) -> bool:
    """Convert pickled weights to safetensors and remove the pickle; returns whether there were any.

    torch's weights-only reader accepts tensors and plain containers and runs no other code of a pickle. Raises ModelError if
    a file contains anything but weights.
    """
    import torch
    from transformers.utils import logging

    from engine.base.load import model_class

    pickles = sorted(folder.glob("pytorch_model*.bin*"))
    if not pickles or any((folder / name).exists() for name in WEIGHTS):
        return False
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    kind = model_class(read_config(folder, weights=False)["model_type"])
    try:
        model, report = kind.from_pretrained(
            folder, local_files_only=True, use_safetensors=False, weights_only=True, dtype="auto", output_loading_info=True
        )
    except Exception as error:
        raise ModelError(
            "{pickle} cannot be read as weights alone ({first}); it was not loaded.",
            pickle=pickles[0],
            first=first_line(error)[:200],
        ) from None
    if report.get("missing_keys"):
        lost = sorted(report["missing_keys"])
        raise ModelError(
            "{pickle} lacks {count} weights ({lost}, …). Get the model again.", pickle=pickles[0], count=len(lost), lost=lost[0]
        )
    with torch.no_grad():
        model.save_pretrained(folder)
    for file in pickles:
        file.unlink()
    return True


def prove(folder: Path, name: str) -> str:
    """Load the base once in half precision and return its fingerprint. Raises ModelError if it is not a usable base."""
    import torch

    from engine.base.fingerprint import fingerprint
    from engine.base.load import load_folder

    card = read_card(folder)
    model, tokenizer = load_folder(folder, name, torch.device("cpu"), "bfloat16")
    family_of(card["model_type"], tokenizer, name)  # its tokenizer must have the language codes
    return fingerprint(model, tokenizer, folder, "bfloat16")

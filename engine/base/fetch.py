"""Getting a base's files into a folder: copied from another folder or fetched from the hub, then proven by loading it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from engine.base.files import PICKLED, WEIGHTS, check_type, read_config
from engine.errors import MissingError, ModelError, StorageError, TailorError
from engine.progress import Progress

__all__ = ["NEEDED", "check_space", "convert_weights", "copy", "download", "prove", "size_text", "wanted"]

# What a base needs besides its weights; all else in a folder or repository (other frameworks' weights, code) stays there.
SMALL = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "tokenizer.json", "vocab.json", "target_vocab.json", "*.spm", "sentencepiece.bpe.model", "README.md", "LICENSE*",
)  # fmt: skip
NEEDED = "config.json, model.safetensors, tokenizer_config.json and the tokenizer's own files"
BLOCK = 1 << 22
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


def wanted(names: Iterable[str], where: str, convert: bool) -> list[str]:
    """The files of a base among those at hand. Raises ModelError where there are no weights that may be taken."""
    names = sorted(names)
    if "config.json" not in names:
        raise ModelError(f"{where} is no model: it has no config.json. Give a transformers translation model.")
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
            f"{where} has only pickled weights ({pickled[0]}), which can run code when they are loaded. Run "
            f"`tailormt base add {where} --convert` to read them without running anything and keep model.safetensors."
        )
    raise ModelError(f"{where} has no weights: model.safetensors is missing.")


def size_text(size: float) -> str:
    """Bytes as a person says them: 24.3 MiB, 4.6 GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def check_space(folder: Path, needed: int) -> None:
    """Raises StorageError where the folder's disk has not that many bytes left."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            f"The base needs {size_text(needed)} and the disk of {folder.parent} has {size_text(free)} left. Free some space, "
            "or set TAILORMT_HOME to a folder on a larger disk."
        )


def copy(folder: Path, staging: Path, convert: bool, progress: Progress) -> None:
    """Copy a base's files from a folder. Raises ModelError where it is no base, StorageError on a full disk."""
    check_type(read_config(folder, weights=False)["model_type"], folder.resolve().name)
    names = wanted((file.name for file in folder.iterdir() if file.is_file()), str(folder), convert)
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
    """Fetch a base's files from the hub; returns the commit that they are of.

    This is a network call, which the user asked for. Raises MissingError where there is no connection (saying what to put
    where), ModelError where the repository is not there, not open, or no base.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils import disable_progress_bars

    progress.begin(f"Fetching {name}", 0, 2)
    disable_progress_bars()
    try:
        info = HfApi().model_info(name, revision=revision or None, files_metadata=True, timeout=20)
        sizes = {item.rfilename: item.size or 0 for item in info.siblings or () if "/" not in item.rfilename}
        names = wanted(sizes, name, convert)
        total, done = sum(sizes[file] for file in names), 0
        check_space(staging, total)
        for file in names:
            hf_hub_download(
                name, file, revision=info.sha, local_dir=staging, tqdm_class=bar(progress, done, total)
            )  # fmt: skip
            done += sizes[file]
            progress.advance(done, total, size_text(total))
    except GatedRepoError:
        raise ModelError(
            f"The model {name} asks for its licence to be accepted first: do that on its page on the hub, then log in with "
            "`hf auth login` and run this again."
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            f"The model {name} has no revision {revision}. Give a branch, tag or commit that it has."
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(f"There is no model {name} on the hub, or it is private. Check the spelling.") from None
    except TailorError:
        raise
    except Exception as error:  # the hub's client and what it stands on have many types for one thing
        if isinstance(error, OSError) and error.errno in OF_THE_DISK:
            raise
        raise offline(name, staging, error) from error
    shutil.rmtree(staging / ".cache", ignore_errors=True)  # the hub's notes on what it fetched
    return str(info.sha)


def offline(name: str, staging: Path, error: Exception) -> MissingError:
    """The sentence for a machine without a connection."""
    place = staging.parent / name.rpartition("/")[2]
    return MissingError(
        f"The base {name} could not be fetched: the hub does not answer ({type(error).__name__}). On a machine with a "
        f"connection run `hf download {name} --local-dir FOLDER`, bring the folder here and run `tailormt base add FOLDER`; or "
        f"copy its files ({NEEDED}) into {place}."
    )


def bar(progress: Progress, before: int, total: int) -> type:
    """A progress bar in tqdm's shape for the hub's client, that reports to `progress` the bytes of one file."""
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
    """Turn pickled weights into safetensors and remove the pickle; returns whether there were any.

    torch's reader for weights alone (weights_only) knows tensors and plain containers and runs nothing else of a pickle.
    Raises ModelError where a file holds more than weights.
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
            folder,
            local_files_only=True,
            use_safetensors=False,
            weights_only=True,
            dtype="auto",
            output_loading_info=True,
        )
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{pickles[0]} cannot be read as weights alone ({first.rstrip('.')[:200]}); it was not loaded."
        ) from None
    if report.get("missing_keys"):
        lost = sorted(report["missing_keys"])
        raise ModelError(f"{pickles[0]} lacks {len(lost)} weights ({lost[0]}, …). Get the model again.")
    with torch.no_grad():
        model.save_pretrained(folder)
    for file in pickles:
        file.unlink()
    return True


def prove(folder: Path, name: str) -> str:
    """Load the base once, in half the memory, and return its fingerprint. Raises ModelError where it is no usable base."""
    import torch

    from engine.base.card import read_card
    from engine.base.families import family_of
    from engine.base.fingerprint import fingerprint
    from engine.base.load import load_folder

    card = read_card(folder)
    model, tokenizer = load_folder(folder, name, torch.device("cpu"), "bfloat16")
    family_of(card["model_type"], tokenizer, name)  # its tokenizer must have the languages' codes
    return fingerprint(model, tokenizer, folder, "bfloat16")

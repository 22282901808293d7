"""Models for distribution: weights in half precision, without optimizer state or paths of the training machine.

stanza itself reads and writes the files. When it loads such a model, it still computes in single precision, since loading
copies the weights into single-precision tensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.builders.parsers.watch import watched
from engine.core.progress import Progress


def shrink(part: str, source: Path, target: Path, vectors: Path) -> None:
    """Write the model of `part` in `source` to `target` in half precision; `vectors` is the set's vector file. Raises
    OSError if nothing was written.
    """
    with watched(Progress()):
        trainer = _load(part, str(source), str(vectors))
        config = trainer.model.args if part == "constituency" else trainer.args
        for key, value in list(config.items()):
            if isinstance(value, str) and ("/" in value or "\\" in value):
                config[key] = Path(value).name
        if part == "tokenize":
            trainer.external_dict = None  # its words are also in the lexicon
        if trainer.model is not None:  # None if the model is only a dictionary
            trainer.model.half()
        if part == "constituency":
            trainer.save(str(target), save_optimizer=False)
        else:
            trainer.save(str(target))
    if not target.is_file():  # stanza only warns when it cannot write
        raise OSError(f"{target} was not written")


def _load(part: str, source: str, vectors: str) -> Any:
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.common.pretrain import Pretrain

    if part == "tokenize":
        from stanza.models.tokenization.trainer import Trainer as Tokenizer

        return Tokenizer(model_file=source, device="cpu")
    if part == "mwt":
        from stanza.models.mwt.trainer import Trainer as Expander

        return Expander(model_file=source, device="cpu")
    if part == "pos":
        from stanza.models.pos.trainer import Trainer as Tagger

        return Tagger(pretrain=Pretrain(vectors), model_file=source, device="cpu", foundation_cache=FoundationCache())
    if part == "depparse":
        from stanza.models.depparse.trainer import Trainer as Parser

        return Parser.load(source, Pretrain(vectors), device="cpu")
    from stanza.models.constituency.trainer import Trainer as Constituency

    where = {"wordvec_pretrain_file": vectors, "device": "cpu"}
    return Constituency.load(source, args=where, foundation_cache=FoundationCache())

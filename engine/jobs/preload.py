"""What nearly every job imports: loaded once in the process that jobs are forked from, it takes none of a job's time.

Nothing here starts a thread, opens the store or looks for a GPU: a fork could use none of it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib

from engine.core.cores import share_cores

MODULES = (
    "engine.jobs.child",
    "engine.store",
    "engine.serving.model_cache",
    "engine.evaluation.style_scorers",
    "engine.workflows.customize.pipeline",
    "langcodes",
    "sacrebleu",
    "transformers.models.marian.tokenization_marian",
    "torch._meta_registrations",  # half a second when the first model is loaded
)

share_cores(spin=False)  # before torch is loaded
with contextlib.suppress(Exception):  # what cannot be imported is reported by the job that needs it
    from engine.base.load import load_libraries

    load_libraries("marian")
    for name in MODULES:
        importlib.import_module(name)
gc.freeze()  # a job that looks for garbage touches, and so copies, none of this

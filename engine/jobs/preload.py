"""Preloads modules used by most jobs in the process that jobs are forked from, so that jobs start faster.

This must not start threads, open the store or detect GPUs, since forks could not use them.
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
    "torch._meta_registrations",  # otherwise imported slowly when the first model is loaded
)

share_cores(spin=False)  # before torch is loaded
with contextlib.suppress(Exception):  # import errors are reported by the jobs that need the module
    from engine.base.load import load_libraries

    load_libraries("marian")
    for name in MODULES:
        importlib.import_module(name)
gc.freeze()  # keeps garbage collection in jobs from touching, and so copying, these objects

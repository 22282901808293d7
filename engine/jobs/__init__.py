"""Background work: a queue in the store, and worker processes that run its jobs.

    job = enqueue(store, "customize", {...}, project_id=1)    # the studio; returns at once
    start_background_worker(settings)                         # once; the worker outlives the studio
    store.jobs.get(job.id).fraction                           # any process, any time

A worker runs each job in a separate process, so that all memory is freed when the job ends. If the worker ends, so do its
jobs, since nothing monitors them any more and the user wants the machine back. They can be resumed.
"""

from __future__ import annotations

from engine.jobs.background import start_background_worker, stop_background_worker
from engine.jobs.paths import job_folder, log_tail
from engine.jobs.registry import KINDS, JobContext, enqueue

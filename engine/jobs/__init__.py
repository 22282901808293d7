"""Background work: a queue in the store, and worker processes that empty it.

    job = enqueue(store, "customize", {...}, project_id=1)    # the studio, at once
    start_background_worker(settings)                         # once; it outlives the studio
    store.jobs.get(job.id).fraction                           # any process, any time

A worker runs each job in a process of its own, so that memory is free again when it ends. A job without its worker
stops: nobody is left to watch it, and the user who ended the worker wants the machine back. It can be resumed.
"""

from __future__ import annotations

from engine.jobs.background import start_background_worker, stop_background_worker
from engine.jobs.paths import job_folder, log_tail
from engine.jobs.registry import KINDS, JobContext, enqueue

"""Starts processes of jobs by forking one that has loaded all libraries, since these take longer to load than a tiny job.

Reads lines from stdin: a number of a job and its payload starts it, and its process number is the answer; `orphan` and a
process number closes the pipe to that one, as the end of its worker does. A child is `engine.jobs.child`, as a worker starts it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys


def load() -> None:
    """All that a job loads, and nothing that starts a thread or opens the store."""
    import sacrebleu
    import safetensors.torch
    import sentencepiece
    import torch
    import transformers.models.marian.modeling_marian
    import transformers.models.marian.tokenization_marian

    import engine.evaluation.metrics
    import engine.jobs.child
    import engine.memory
    import engine.methods.memory_adapter.module
    import engine.phrases.statistical
    import engine.plugins.export
    import engine.store
    import engine.training.loop
    import engine.workflows.customize.pipeline

    assert all((sacrebleu, safetensors, sentencepiece, transformers, engine.store))
    torch.set_num_threads(1)


def main() -> None:
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are forgotten at once
    pipes: dict[int, int] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "orphan":
            with contextlib.suppress(KeyError):
                os.close(pipes.pop(int(rest)))
            print("ok", flush=True)
            continue
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            begin(int(word), reading, [writing, *pipes.values()])
        os.close(reading)
        pipes[pid] = writing
        os.write(writing, json.dumps(json.loads(rest)).encode() + b"\n")
        print(pid, flush=True)


def begin(job: int, reading: int, others: list[int]) -> None:
    """In the child: a session, a pipe and a log of its own, then the job to its end."""
    os.setsid()
    for number in others:
        os.close(number)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(reading, 0)
    log = os.open(os.devnull if len(sys.argv) < 2 else sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        from engine.jobs.child import main as child

        tell_steps_at_once()
        code = child([str(job)])
    finally:
        os._exit(code)


def tell_steps_at_once() -> None:
    """Steps of so small a job are over before the next of the looks at which the progress is written."""
    from engine.jobs.progress import RowProgress

    begin_step = RowProgress.begin

    def tell(self: RowProgress, step: str, index: int = 0, steps: int = 1) -> None:
        begin_step(self, step, index, steps)
        self.show(0.0, None, None, "")
        self._write()

    RowProgress.begin = tell  # type: ignore[method-assign]


if __name__ == "__main__":
    main()

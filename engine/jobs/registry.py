"""The kinds of jobs. A new kind is one entry in KINDS."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.json_object import Json
from engine.core.progress import Progress
from engine.core.settings import Settings
from engine.core.step_cache import StepCache
from engine.errors import Cancelled, InputError, TailorError
from engine.jobs.handlers import bases, explore
from engine.jobs.paths import job_folder
from engine.jobs.progress import plain
from engine.store.queue import ASKED, AUTOMATIC, LONG
from engine.store.records import CorpusRow, JobRow
from engine.store.sharing.sync import before_queueing, working
from engine.workflows.customize.request import CustomizeRequest

if TYPE_CHECKING:
    from engine.store import Store


@dataclass(frozen=True)
class JobContext:
    """The resources available to a job."""

    job: JobRow
    store: Store
    settings: Settings
    workspace: Path
    progress: Progress

    @property
    def run(self) -> Path:
        """The folder of this job's private files; the jobs of a project share the rest of the workspace."""
        return job_folder(self.workspace, self.job)


@dataclass(frozen=True)
class JobKind:
    """A kind of job.

    `run` does the work and returns a JSON object; it must be able to continue where an earlier attempt stopped. `check` is
    called before a job is queued and returns the arguments to store, with absolute paths, since a worker may run in another
    folder; it raises a TailorError if they are invalid. `priority` is the default priority.
    """

    title: str
    run: Callable[[JobContext], Json]
    check: Callable[[Mapping[str, Any]], Json] | None = None
    priority: int = LONG
    device: str = ""  # "cpu" if no model is needed, "gpu" if a GPU is required
    in_order: bool = False  # it changes the project's shared files, so it does not overtake other jobs that do
    gives_way_to: str = ""  # whose jobs of a higher priority it pauses for: "anyone", its "owner", or none

    def do(self, context: JobContext) -> Json:
        """Fetch the workspace, run the job, and publish the workspace."""
        with working(context.settings, context.store, context.job, context.progress):
            return self.run(context)


def known_kinds(modules: Iterable[str] = ()) -> dict[str, JobKind]:
    """The built-in kinds, and those in the KINDS of further modules (dotted names)."""
    kinds = dict(KINDS)
    for name in modules:
        kinds |= importlib.import_module(name).KINDS
    return kinds


def enqueue(
    store: Store,
    kind: str,
    arguments: Mapping[str, Any],
    *,
    project_id: int | None = None,
    owner: str = "",
    priority: int | None = None,
) -> JobRow:
    """Queue a job. Raises InputError for an unknown kind or invalid arguments, before anything is stored.

    `prepare` and `customize` take the fields of `CustomizeRequest`; base, source, target and name default to the project's,
    output to a file in the workspace. `corpus_id` may specify the corpus row to fill. Fair scheduling is per `owner`, or
    per project without one.
    """
    if kind not in KINDS:
        raise InputError("There is no kind of job called {kind}. Known: {kinds}.", kind=kind, kinds=", ".join(sorted(KINDS)))
    job_kind = KINDS[kind]
    if job_kind.check is not None:
        arguments = job_kind.check(arguments)
    queue_priority = job_kind.priority if priority is None else priority
    if job_kind.in_order and project_id is not None:
        waiting = store.jobs.list(project_id, states=("queued", "running"))
        queue_priority = min([queue_priority, *(row.priority for row in waiting if row.kind in KINDS and KINDS[row.kind].in_order)])
    before_queueing(store, project_id)
    return store.jobs.enqueue(kind, arguments, project_id=project_id, owner=owner, priority=queue_priority, device=job_kind.device)


def _check_request(arguments: Mapping[str, Any]) -> Json:
    request = CustomizeRequest.of_job(arguments)
    checked = request.to_mapping()
    selected = {name: checked.get(name, value) for name, value in arguments.items()}
    if selected.get("samples"):
        selected["samples"] = [str(Path(path).expanduser().resolve()) for path in request.samples]
    for name in ("base", "backward", "output"):
        path = Path(str(selected.get(name) or "")).expanduser()
        # A base may also be a hub id instead of a path.
        if selected.get(name) and (name == "output" or path.exists()):
            selected[name] = str(path.resolve())
    return selected


def _request(context: JobContext) -> CustomizeRequest:
    from engine.workflows.customize.project_samples import are_held, held_samples

    values: Json = {}
    name = f"plugin-{context.job.id}"
    if context.job.project_id is not None:
        project = context.store.projects.get(context.job.project_id)
        values = {"base": project.base, "source": project.source, "target": project.target, "name": project.name}
        name = re.sub(r"[^\w.-]+", "-", project.name).strip("-.") or name
    values |= {key: value for key, value in context.job.arguments.items() if value not in ("", None)}
    sample_values = held_samples(context.workspace)
    if sample_values["samples"] and are_held(values.get("samples", ()), context.job.project_id):
        # Files, labels and settings may have changed while the job was queued: use the project's current samples.
        values = {key: value for key, value in values.items() if key not in ("domains", "corpus_options")} | sample_values
    # The job's id is in the name, so that a second plugin of the project does not overwrite the first.
    values.setdefault("output", str(context.workspace / "plugins" / f"{name}-{context.job.id}.zip"))
    Path(values["output"]).parent.mkdir(parents=True, exist_ok=True)
    return CustomizeRequest.of_job(values)


def _corpus(context: JobContext, request: CustomizeRequest) -> CorpusRow | None:
    """The corpus row of this job's samples: the specified one, else that of this workspace, else a new one."""
    if context.job.project_id is None:
        return None
    folder, corpora = str(context.workspace), context.store.corpora
    number = context.job.arguments.get("corpus_id")
    if number is not None:
        return corpora.update(int(number), folder=folder)
    name = ", ".join(Path(path).name for path in request.samples) or "samples"
    for row in corpora.list(context.job.project_id):
        if row.folder == folder:
            return corpora.update(row.id, name=name)
    return corpora.create(context.job.project_id, name, folder=folder)


def _report(context: JobContext) -> Any:
    """The import report of the step "samples"; None if there is none."""
    path = context.workspace / "import_report.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _record_samples(context: JobContext, corpus: CorpusRow | None) -> Json:
    """Store the results of the step "samples"."""
    report = _report(context)
    if corpus is None:
        return {"kept": report["kept"]}
    context.store.corpora.update(corpus.id, state="ready", kept=report["kept"], skipped=report["skipped"], report=report)
    return {"kept": report["kept"], "corpus_id": corpus.id}


def _record_phrases(context: JobContext, corpus: CorpusRow | None) -> Json:
    """Store the results of the step "phrases"; an empty object if there are no phrases."""
    from engine.phrases import PhraseSet

    path = context.workspace / "phrases.jsonl"
    if not path.exists():
        return {}
    phrases = PhraseSet.load(path)
    result = {"phrases": len(phrases.phrases)}
    if corpus is not None:
        value = context.store.phrase_sets.create(corpus.id, str(path), phrases.parser, len(phrases.phrases))
        result["phrase_set_id"] = value.id
    return result


def _reading(context: JobContext, corpus: CorpusRow | None, work: Callable[[], Any]) -> Any:
    """Do the work and keep the state in the corpus row up to date, during the work and after a failure."""
    if corpus is None:
        return work()
    before = corpus.state if corpus.state != "reading" else "new"
    context.store.corpora.update(corpus.id, state="reading")
    try:
        return work()
    except Cancelled:
        context.store.corpora.update(corpus.id, state=before)
        raise
    except BaseException:
        context.store.corpora.update(corpus.id, state="failed")
        raise


def _prepare(context: JobContext) -> Json:
    from engine.workflows.customize import pipeline

    request = _request(context)
    corpus = _corpus(context, request)
    _reading(context, corpus, lambda: pipeline.read_alone(request, context.workspace, context.progress))
    result = _record_samples(context, corpus)
    _leakage(context)
    _look_soon(context)
    return result


def _leakage(context: JobContext) -> Json:
    """Compare the samples with the user's test files; an empty object without a project."""
    from engine.corpora.leakage import check_leaks

    project = None if context.job.project_id is None else context.store.projects.get(context.job.project_id)
    if project is None:
        return {}
    return check_leaks(context.workspace, project.target, project.source, context.progress)


def _look_soon(context: JobContext) -> None:
    """After samples were read, queue the preview of them."""
    if context.job.project_id is not None:
        arguments = {name: value for name, value in context.job.arguments.items() if name != "corpus_id"}
        enqueue(context.store, "preview", arguments, project_id=context.job.project_id, owner=context.job.owner)


def _preview(context: JobContext) -> Json:
    """The first look, then domain proportions and phrases, which are computed even if the first look fails."""
    from engine.workflows.customize import pipeline
    from engine.workflows.customize.project_samples import are_held
    from engine.workflows.customize.steps import load_pair
    from engine.workflows.preview import STEPS, preview
    from engine.workflows.throughput import NumberedProgress

    number, waiting = context.job.project_id, context.store.jobs.list
    later = waiting(number, states=("queued",), kinds=("prepare",)) if number else []
    if any(job.id > context.job.id for job in later):
        return {"skipped": "the samples are about to be read again"}  # which queues another preview
    request = _request(context)
    # An automatic preview does not reread files: a removed file can be restored until the user requests a new reading.
    automatic = context.job.priority == AUTOMATIC
    as_read = automatic and are_held(request.samples, context.job.project_id)
    if as_read and not any(Path(path).exists() for path in request.samples):
        return {"skipped": "the samples were removed"}
    context = replace(context, progress=NumberedProgress(context.progress, STEPS))
    of_all = (request, context.workspace, context.progress, context.settings)
    context.progress.begin("Loading the base")
    pair, result, failed = load_pair(request, context.settings), Json(), None
    if context.settings.first_look or not automatic:
        try:
            look = preview(*of_all, as_read=as_read, pair=pair)
            result = {key: look[key] for key in ("differ", "sentences", "loss_base", "loss")}
        except Cancelled:
            raise
        except TailorError as error:
            failed = error
    pipeline.prepare(*of_all, as_read=as_read, pair=pair, after_samples=explore.after_samples(context))
    result |= _record_phrases(context, _corpus(context, request))
    if failed is not None:
        raise failed
    return result


def _customize(context: JobContext) -> Json:
    from engine.plugins import read_bundle_card
    from engine.workflows.customize import pipeline

    request = _request(context)
    _take_over(context)
    before = _report(context)
    try:
        summary = pipeline.customize(request, context.workspace, context.progress, context.settings, run=context.run)
    except BaseException:  # for example cancelled after rereading the samples
        if _report(context) not in (None, before):
            _record_samples(context, _corpus(context, request))
        raise
    corpus = _corpus(context, request)
    _record_samples(context, corpus)
    _record_phrases(context, corpus)
    if context.job.project_id is None:
        return summary
    card = read_bundle_card(Path(request.output))
    values = {
        "name": request.name,
        "method": summary["method"],
        "base_fingerprint": str(card.get("base_fingerprint") or ""),
        "metrics": plain(summary.get("metrics") or card.get("metrics") or {}),
        "job_id": context.job.id,
    }
    plugins = context.store.plugins
    for row in plugins.list(context.job.project_id):
        if row.path == request.output:  # created by an earlier attempt
            plugin = plugins.update(row.id, **values)
            break
    else:
        plugin = plugins.create(context.job.project_id, path=request.output, **values)
        explore.proportions_of_plugin(context, plugin.id, summary["method"])
    _tidy(context.run, ("method/datastore.*", "method/*.faiss", "knn"))
    if summary.get("stopped_by") != "max_minutes":  # otherwise training may be continued
        _tidy(context.run, ("training/checkpoint*",))
    return summary | {"plugin_id": plugin.id}


def _late(module: str, function: str) -> Callable[[Any], Json]:
    """A function of a handler module that is imported when called.

    The handlers for comparisons and documents import the file readers and decoders, which would slow down the start of workers
    and of other kinds of jobs.
    """

    def call(argument: Any) -> Json:
        result: Json = getattr(importlib.import_module(f"engine.jobs.handlers.{module}"), function)(argument)
        return result

    return call


def _take_over(context: JobContext) -> None:
    """Copy the training state of the run that this one continues."""
    number, training_folder = context.job.arguments.get("continues"), context.run / "training"
    if number is None or training_folder.exists():
        return
    earlier = job_folder(context.workspace, context.store.jobs.get(int(number)))
    if (earlier / "training").is_dir():
        context.run.mkdir(parents=True, exist_ok=True)
        shutil.copytree(earlier / "training", training_folder)
        StepCache(context.run).mark_done("training", StepCache(earlier).get("training"))


def _tidy(run: Path, patterns: Iterable[str]) -> None:
    """Remove files that only a continued run would need, since the bundle holds the results.

    Tables, curves and the memory, which is shown as a map, are kept.
    """
    for pattern in patterns:
        for path in run.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


KINDS: dict[str, JobKind] = {
    "prepare": JobKind("Read samples", _prepare, _check_request, ASKED, in_order=True),
    "leakage": JobKind("Compare samples with test files", _leakage, None, ASKED, "cpu"),
    "preview": JobKind("First look, phrases, domains", _preview, _check_request, AUTOMATIC, gives_way_to="anyone"),
    "customize": JobKind("Make a plugin", _customize, _check_request, in_order=True, gives_way_to="owner"),
    "compare": JobKind("Compare translations", _late("compare", "run"), _late("compare", "check"), ASKED),
    "proportions": JobKind("Fit domain proportions", explore.proportions, None, ASKED, gives_way_to="anyone"),
    "phrase_map": JobKind("Draw the map of phrases", explore.phrase_map, None, ASKED),
    "ablate": JobKind("Exchange a plugin's memory", explore.ablation, explore.check_ablation),
    "translate": JobKind("Translate a document", _late("documents", "run"), _late("documents", "check")),
    bases.KIND: JobKind("Add a base", bases.run, bases.check, ASKED, "cpu"),
}

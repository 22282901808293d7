"""Jobs, parts of jobs and translators on a real Ray cluster of three nodes on this machine, one of which is killed."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.core.progress import Progress
from engine.core.remote_map import use_remote_mapper
from engine.core.settings import Settings
from engine.decoding.translate import translate
from engine.errors import InputError, ModelError
from engine.jobs import log_tail, worker
from engine.store import JobRow, Store
from tests.bases import SAMPLES
from tests.conftest import ROOT, TESTS
from tests.integration.worker_kinds import PAUSE, counted
from tests.waiting import until

pytest.importorskip("ray", reason="the extra ray is not installed")

KINDS = ("worker_kinds",)
PATIENCE = 150.0  # seconds; a cluster on a busy machine is slow to notice and to start


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from tests.ray_cluster import ray_cluster

    paths = os.pathsep.join([str(TESTS / "integration"), str(ROOT)])
    with ray_cluster(nodes=3, cpus=1, environment={"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}) as result:
        yield result


@pytest.fixture
def settings(cluster: Any, tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path), backend="ray", ray_address=cluster.address, device="cpu", threads=1, ray_actors=2)


@contextlib.contextmanager
def _worker(settings: Settings) -> Iterator[threading.Event]:
    stop = threading.Event()
    options = {"poll": 0.05, "kinds": KINDS, "stop": stop}
    thread = threading.Thread(target=worker.run, args=(settings,), kwargs=options)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def _runs(settings: Settings, job: JobRow) -> list[list[int]]:
    """[job, process, process that started it] of each attempt."""
    file = Path(settings.home) / "jobs" / str(job.id) / "runs.txt"
    return [[int(word) for word in line.split()] for line in file.read_text(encoding="utf-8").splitlines()]


def _kill(cluster: Any, raylet: int) -> None:
    """SIGKILL to a node's raylet, as when its machine loses power."""
    node = next(node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid == raylet)
    cluster.remove_node(node, allow_graceful=False)


def test_a_job_runs_on_a_node_is_seen_on_its_way_and_stops_when_cancelled(store: Store, settings: Settings) -> None:
    done, endless = store.jobs.enqueue("count", {"until": 20}), store.jobs.enqueue("count", {"until": 9999})
    with _worker(settings):
        until(lambda: not store.jobs.get(done.id).active)
        until(lambda: store.jobs.get(endless.id).done > 0)
        _, process, parent = _runs(settings, endless)[0]
        assert any("ray::" in word for word in psutil.Process(parent).cmdline())
        store.jobs.cancel(endless.id)
        before = counted(settings, endless)
        until(lambda: store.jobs.get(endless.id).state == "cancelled")
        assert (counted(settings, endless) - before) * PAUSE < 2, "seconds of its work"
        until(lambda: not psutil.pid_exists(process))
    row = store.jobs.get(done.id)
    assert (row.state, row.result, row.attempt) == ("succeeded", {"began": 0, "counted": 20}, 1)
    assert f"== job {done.id} (count), attempt 1" in log_tail(row)


def test_a_faulty_job_says_its_sentence_and_a_stopped_worker_leaves_one_that_goes_on(store: Store, settings: Settings) -> None:
    broken = store.jobs.enqueue("unreadable", {})
    with _worker(settings) as stop:
        until(lambda: store.jobs.get(broken.id).state == "failed")
        job = store.jobs.enqueue("count", {"until": 120, "pause": 0.1})  # far from done when it is stopped
        until(lambda: store.jobs.get(job.id).done > 5)
        stop.set()
    assert store.jobs.get(broken.id).error == "luxun.txt, line 3: this is no text. Save it as UTF-8."
    assert store.jobs.get(job.id).state == "interrupted"
    store.jobs.resume(job.id)
    with _worker(settings):
        until(lambda: not store.jobs.get(job.id).active)
    row = store.jobs.get(job.id)
    assert row.state == "succeeded"
    assert row.result["began"] > 0


def test_what_a_killed_node_did_is_done_again_on_another(cluster: Any, store: Store, settings: Settings) -> None:
    job = store.jobs.enqueue("count", {"until": 60, "pause": 0.1})
    with _worker(settings):
        until(lambda: store.jobs.get(job.id).done > 5)
        _, process, parent = _runs(settings, job)[0]
        _kill(cluster, psutil.Process(parent).ppid())
        until(lambda: not psutil.pid_exists(process))  # it does not go on beside the next attempt
        until(lambda: not store.jobs.get(job.id).active)
    row = store.jobs.get(job.id)
    assert (row.state, row.attempt, row.result["counted"]) == ("succeeded", 2, 60)
    assert row.result["began"] > 0  # and it went on from what was kept
    first, second = _runs(settings, job)
    assert first[2] != second[2]
    cluster.add_node(num_cpus=1, num_gpus=0, node_ip_address="127.0.0.2", object_store_memory=80 << 20)


class Killing(Progress):
    """Kills a node with an actor on it as soon as a part is done."""

    def __init__(self, cluster: Any) -> None:
        super().__init__()
        self.cluster, self.killed = cluster, 0

    def advance(self, done: float, total: float | None, note: str = "") -> None:
        if self.killed or not done:
            return
        for node in self.cluster.worker_nodes:
            raylet = node.all_processes["raylet"][0].process.pid
            if any("MapWorker" in " ".join(child.cmdline()) for child in psutil.Process(raylet).children()):
                self.killed = raylet
                _kill(self.cluster, raylet)
                return


def test_back_translation_over_actors_is_line_for_line_that_of_one_machine_also_when_a_node_dies(
    cluster: Any, settings: Settings, base: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.decoding import resumable
    from engine.jobs.backends.ray_data import RayMap

    monkeypatch.setattr(resumable, "PART", 8)
    texts = (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text(encoding="utf-8").splitlines()[:96]
    alone = resumable.back_translate_all(base, texts, None, Progress())
    spread, progress = RayMap(settings), Killing(cluster)
    with use_remote_mapper(spread):
        partial = tmp_path / "partial.jsonl"
        assert resumable.back_translate_all(base, texts, partial, progress) == alone
    assert spread.taken == 12
    assert progress.killed
    assert not partial.exists()
    cluster.add_node(num_cpus=1, num_gpus=0, node_ip_address="127.0.0.2", object_store_memory=80 << 20)


def test_phrases_parsed_over_actors_are_those_of_one_machine(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.jobs.backends.ray_data import RayMap
    from engine.phrases import PhraseOptions, extract
    from engine.phrases.extract import Drawing, extract_phrases

    monkeypatch.setattr(extract, "PART", 8)
    sentences = (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text(encoding="utf-8").splitlines()[:32]

    def found() -> tuple[Any, list[Any]]:
        trees: list[Any] = []
        phrases = extract_phrases(
            sentences, "en", PhraseOptions(), parser_dirs=settings.parser_dirs,
            drawing=Drawing(lambda sentence, tree: trees.append((sentence, tree))),
        )  # fmt: skip
        return phrases, trees

    alone, drawn = found()
    assert "constituents" in alone.parser or "subtrees" in alone.parser
    spread = RayMap(settings.replace(ray_actors=1))
    with use_remote_mapper(spread):
        again, drawn_again = found()
    assert spread.taken == 4
    assert (again.phrases, again.parser) == (alone.phrases, alone.parser)
    assert drawn_again == drawn


def test_a_corpus_translated_over_actors_with_a_plugin_is_that_of_one_machine(
    settings: Settings, base: Any, bundle: Path, tmp_path: Path
) -> None:
    from engine.base.decoding_options import Decoding
    from engine.jobs.backends.ray_data import RayMap
    from engine.plugins import Plugin
    from engine.serving.units.translate import BaseTranslator
    from engine.workflows.documents import translate_document

    file = tmp_path / "corpus.txt"
    lines = (SAMPLES / "elizabethan-en" / "elizabethan-en.txt").read_text(encoding="utf-8").splitlines()[:40]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    plugin = Plugin.load(bundle, base, cache=tmp_path / "unpacked")
    decoding = Decoding(beam=1, batch_tokens=256)

    def made(name: str) -> str:
        translator = BaseTranslator(base, plugin, 1.0, decoding, str(bundle))
        translate_document(file, tmp_path / name, translator, partial=tmp_path / "partial.jsonl")
        return (tmp_path / name).read_text(encoding="utf-8")

    alone, spread = made("alone.txt"), RayMap(settings.replace(ray_actors=1))
    with use_remote_mapper(spread):
        assert made("spread.txt") == alone
    assert spread.taken >= 2


def test_another_base_at_the_same_path_of_a_node_is_refused(settings: Settings, base: Any) -> None:
    from engine.base.remote import base_arguments
    from engine.decoding.remote import BACK_TRANSLATE
    from engine.jobs.backends.ray_data import Worker
    from engine.jobs.backends.remote_errors import raise_remote_error

    other = base_arguments(base) | {"fingerprint": "sha256:0", "decoding": None, "settings": settings.to_mapping()}
    actor = Worker(BACK_TRANSLATE, json.dumps(other))  # as Ray makes it on a node
    answer = json.loads(actor({"part": ['["a"]']})["result"][0])
    with pytest.raises(ModelError, match="on this node"):
        raise_remote_error(answer["error"])


def test_where_there_is_no_room_for_actors_the_job_does_all_itself(settings: Settings, base: Any) -> None:
    from engine.jobs.backends.ray_data import RayMap

    crowded = RayMap(settings.replace(threads=64))
    assert crowded.take("engine.phrases.remote:Parse", {}, [[], []], Progress()) is None


def test_replicas_load_plugins_on_demand_keep_few_and_translate_as_the_studio_does(
    cluster: Any, settings: Settings, base: Any, tiny: Path, bundle: Path, tmp_path: Path
) -> None:
    from engine.base.decoding_options import Decoding
    from engine.jobs.backends import ray_serve
    from engine.jobs.backends.ray_cluster import free_slots
    from engine.plugins import Plugin
    from engine.serving.batcher import TranslationSpec
    from engine.serving.model_cache import ModelCache

    texts = ["The rain stopped.", "Nobody came to the door.", "The road is long."]
    copies = []
    for number in range(3):
        copies.append(tmp_path / f"plugin-{number}.zip")
        copies[-1].write_bytes(bundle.read_bytes())
    plugin = Plugin.load(bundle, base, cache=tmp_path / "unpacked")
    decoding = Decoding.from_mapping(plugin.card.get("decoding", {}))
    expected = translate(base, texts, plugin, decoding=decoding)
    used = settings.replace(loaded_plugins=2, replicas=2)
    batcher = ray_serve.ReplicaBatcher(ModelCache(used))
    try:
        with pytest.raises(InputError, match="replicas start"):
            batcher.submit(TranslationSpec.of(str(tiny), "en", "zh"), texts).result()
        with pytest.raises(InputError, match=r"has room for \d more copies"):
            ray_serve.start_replicas(used, 64)
        until(lambda: free_slots({"num_cpus": 1.0, "num_gpus": 0.0}) >= 2)  # what other tests took is given back
        assert ray_serve.start_replicas(used, 2)["running"] == 2
        requests = [batcher.submit(TranslationSpec.of(str(tiny), "en", "zh", str(path)), texts) for path in [*copies, *copies]]
        assert [request.result(PATIENCE) for request in requests] == [expected] * 6
        plain = batcher.submit(TranslationSpec.of(str(tiny), "en", "zh"), texts * 100).result(PATIENCE)
        assert plain == translate(base, texts, decoding=Decoding()) * 100
        with pytest.raises(InputError, match="no longer there"):
            batcher.submit(TranslationSpec.of(str(tiny), "en", "zh", str(tmp_path / "gone.zip")), texts).result(PATIENCE)
        held = ray_serve.replica_states(used)
        assert 1 <= len(held) <= 2  # Serve asks the copy of its own node as long as that has time
        assert all(len(copy["plugins"]) <= 2 and copy["bases"] == [str(tiny)] for copy in held.values())
        psutil.Process(next(iter(held))).kill()  # a copy dies: its work is asked of the other, and Serve makes a new one
        again = [batcher.submit(TranslationSpec.of(str(tiny), "en", "zh", str(copies[0])), texts) for _ in range(8)]
        assert [request.result(PATIENCE) for request in again] == [expected] * 8
    finally:
        batcher.close()
        ray_serve.stop_replicas(used)


def test_a_cluster_that_is_not_there_is_said_in_one_sentence(
    tailormt: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    assert not ray.is_initialized() or ray.shutdown() is None
    text = tailormt("worker", "--once", "--backend", "ray", "--address", "127.0.0.1:9").sentence
    assert text.startswith("There is no Ray cluster at 127.0.0.1:9")
    assert json.loads(tailormt("methods", "--json").out)

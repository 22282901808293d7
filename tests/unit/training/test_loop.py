"""The training loop: what it promises about order, stopping, resuming and errors."""

import errno
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import Progress
from engine.errors import Cancelled, CorpusError, OptionError, StorageError, TailorError
from engine.memory import PhrasePair, record
from engine.methods import Artefacts, get_method, method_names
from engine.methods.batches import Pairs, epoch_batches
from engine.training import BUDGETS, TrainingOptions, budget_options
from engine.training.loop import Trainer, learning_rate
from engine.training.metrics_log import read_metrics
from tests.bases import SENTENCES, tiny_base

OPTIONS = TrainingOptions(
    max_updates=12, tokens_per_batch=64, learning_rate=3e-3, warmup=4, validate_every=4, checkpoint_every=3, accumulate=2
)


@pytest.fixture(scope="module")
def base():
    return tiny_base()


@pytest.fixture(scope="module")
def artefacts(base, tmp_path_factory):
    pairs = [PhrasePair(i % 3, zh, en, len(zh), 1) for i, (en, zh) in enumerate(SENTENCES)]
    return Artefacts(memory=record(base, pairs, tmp_path_factory.mktemp("m") / "memory.safetensors"))


class StopAt(Progress):
    """Wants to stop when the training reaches an update."""

    def __init__(self, update):
        super().__init__()
        self.at = update

    def advance(self, done, total, note=""):
        if done >= self.at:
            raise Cancelled("stopped")


def run(base, artefacts, folder, options=OPTIONS, progress=None):
    torch.manual_seed(options.seed)
    method = get_method("memory_adapter")
    module = method.build(base, artefacts, method.config_class(memory_dropout=0.4))
    data = Pairs.encode(base, SENTENCES)
    result = Trainer(base, method, module, data, Pairs.encode(base, SENTENCES[:3]), options, folder, precision="float32").run(
        progress=progress
    )
    return result, {key: value.clone() for key, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("stop", [1, 3, 5, 8, 11])
@pytest.mark.slow
def test_resume_ends_bit_for_bit_as_an_undisturbed_run(base, artefacts, tmp_path, stop):
    _, undisturbed = run(base, artefacts, tmp_path / "whole")
    with pytest.raises(Cancelled):
        run(base, artefacts, tmp_path / "parts", progress=StopAt(stop))
    torch.manual_seed(999)  # whatever the process did in between must not matter
    result, parts = run(base, artefacts, tmp_path / "parts")
    assert same(undisturbed, parts)
    assert result.updates == 12

    def rows(name):
        return [(r["step"], r["valid_loss"]) for r in read_metrics(tmp_path / name / "metrics.jsonl") if "valid_loss" in r]

    assert rows("whole") == rows("parts")


@pytest.mark.slow
def test_a_kill_between_checkpoints_costs_no_more_than_the_work_since(base, artefacts, tmp_path):
    class Killed(BaseException):
        pass

    class Kill(Progress):
        def advance(self, done, total, note=""):
            if done == 8:
                raise Killed

    _, undisturbed = run(base, artefacts, tmp_path / "whole")
    with pytest.raises(Killed):
        run(base, artefacts, tmp_path / "killed", progress=Kill())
    state = json.loads((tmp_path / "killed" / "checkpoint" / "state.json").read_text())
    assert state["position"]["update"] == 6
    assert same(run(base, artefacts, tmp_path / "killed")[1], undisturbed)


@pytest.mark.slow
def test_training_lowers_the_validation_loss_and_keeps_the_best(base, artefacts, tmp_path):
    result, _ = run(base, artefacts, tmp_path, OPTIONS.replace(max_updates=40, accumulate=1))
    assert result.best_loss < result.first_loss
    losses = [row["valid_loss"] for row in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in row]
    assert result.best_loss == pytest.approx(min(losses), abs=1e-4)


def test_a_training_that_ran_out_of_time_goes_on_with_more(base, artefacts, tmp_path):
    short, _ = run(base, artefacts, tmp_path, OPTIONS.replace(max_minutes=0))
    assert (short.stopped_by, short.updates, short.limit) == ("max_minutes", 1, 12)
    assert run(base, artefacts, tmp_path, OPTIONS.replace(max_minutes=0))[0].updates == 1, "no time, nothing more"
    longer, _ = run(base, artefacts, tmp_path, OPTIONS.replace(max_minutes=600))
    assert (longer.stopped_by, longer.updates) == ("max_updates", 12)
    steps = [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl") if "valid_loss" in row]
    assert steps == [0, 1, 4, 8, 12], "it began where it had stopped"


def test_other_options_start_anew(base, artefacts, tmp_path):
    with pytest.raises(Cancelled):
        run(base, artefacts, tmp_path, progress=StopAt(6))
    changed = OPTIONS.replace(learning_rate=1e-3)
    _, weights = run(base, artefacts, tmp_path, changed)
    assert same(weights, run(base, artefacts, tmp_path / "clean", changed)[1])


def test_no_updates_leave_the_identity(base, artefacts, tmp_path):
    result, weights = run(base, artefacts, tmp_path, OPTIONS.replace(max_updates=0))
    assert (result.updates, result.ended) == (0, "all 0 updates")
    assert all(not weights[key].any() for key in weights if key.endswith("scale"))


@pytest.mark.slow
def test_patience_and_minutes_end_a_training(base, artefacts, tmp_path):
    still = OPTIONS.replace(max_updates=60, learning_rate=1e-7, warmup=0, validate_every=1, patience=2)
    result, _ = run(base, artefacts, tmp_path / "a", still.replace(learning_rate=0.9))
    assert result.stopped_by == "patience"
    assert result.ended == f"stopped after {result.updates} of 60 updates, when validation stopped improving"
    result, _ = run(base, artefacts, tmp_path / "b", still.replace(max_minutes=0))
    assert (result.stopped_by, result.updates) == ("max_minutes", 1)
    assert result.ended == "stopped at the time limit after 1 of 60 updates"


@pytest.mark.parametrize("also", [{"max_minutes": 0}, {"patience": 1, "learning_rate": 0.9}])
def test_a_training_that_came_to_its_last_update_was_not_stopped(base, artefacts, tmp_path, also):
    options = OPTIONS.replace(max_updates=1, warmup=0, validate_every=1, **also)
    result, _ = run(base, artefacts, tmp_path, options)
    assert (result.stopped_by, result.ended) == ("max_updates", "all 1 updates")


def test_epochs_end_a_training(base, artefacts, tmp_path):
    options = OPTIONS.replace(max_updates=500, max_epochs=2, patience=0)
    batches = len(epoch_batches(Pairs.encode(base, SENTENCES).lengths, 64, seed=1, epoch=0))
    result, _ = run(base, artefacts, tmp_path, options)
    assert (result.stopped_by, result.updates) == ("max_epochs", batches)  # two epochs, two batches an update


def test_a_full_disk_keeps_the_checkpoint_before(base, artefacts, tmp_path, monkeypatch):
    import safetensors.torch

    with pytest.raises(Cancelled):
        run(base, artefacts, tmp_path, progress=StopAt(6))
    before = (tmp_path / "checkpoint" / "state.safetensors").read_bytes()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(safetensors.torch, "save_file", full)
        with pytest.raises(StorageError, match="disk is full"):
            run(base, artefacts, tmp_path)
    assert (tmp_path / "checkpoint" / "state.safetensors").read_bytes() == before
    assert not (tmp_path / "checkpoint.tmp").exists()
    assert run(base, artefacts, tmp_path)[0].updates == 12


@pytest.mark.slow
def test_out_of_memory_names_the_setting_to_lower(base, artefacts, tmp_path, monkeypatch):
    from engine.methods.memory_adapter.method import MemoryAdapter

    def hungry(*args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(MemoryAdapter, "loss", hungry)
    with pytest.raises(TailorError, match="tokens_per_batch"):
        run(base, artefacts, tmp_path)


def test_nothing_to_train_on(base, artefacts, tmp_path):
    method = get_method("memory_adapter")
    module = method.build(base, artefacts, method.config_class())
    with pytest.raises(CorpusError, match="too few"):
        Trainer(base, method, module, Pairs([], [], []), Pairs([], [], []), OPTIONS, tmp_path).run()


def test_schedule_is_warm_up_then_inverse_square_root():
    options = TrainingOptions(learning_rate=1e-3, warmup=100)
    assert learning_rate(0, options, 1000) == pytest.approx(1e-5)
    assert learning_rate(99, options, 1000) == pytest.approx(1e-3)
    assert learning_rate(399, options, 1000) == pytest.approx(5e-4)


def test_the_linear_schedule_ends_at_zero_after_the_last_update():
    options = TrainingOptions(learning_rate=1e-3, warmup=100, schedule="linear")
    rates = [learning_rate(update, options, 1000) for update in range(1001)]
    assert rates[0] == pytest.approx(1e-5)
    assert max(rates) == pytest.approx(1e-3)
    assert rates[99:] == sorted(rates[99:], reverse=True)
    assert rates[550] == pytest.approx(5e-4)
    assert rates[1000] == 0 < rates[999]


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear"])
def test_a_warm_up_longer_than_the_training_is_no_error(schedule):
    options = TrainingOptions(learning_rate=1e-3, warmup=100, schedule=schedule)
    assert all(0 < learning_rate(update, options, 5) <= 1e-3 for update in range(5))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=80), st.integers(50, 300), st.integers(0, 5))
def test_batches_hold_every_pair_once_within_the_budget(lengths, tokens, epoch):
    batches = epoch_batches(lengths, tokens, seed=1, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(max(lengths[i] for i in batch) * len(batch) <= tokens for batch in batches)
    assert batches == epoch_batches(lengths, tokens, seed=1, epoch=epoch)


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("budget", list(BUDGETS))
def test_budgets_are_valid_settings(method: str, budget: str):
    chosen = budget_options(budget, method)
    TrainingOptions.from_mapping(chosen["training"])
    get_method(method).config_class.from_mapping(chosen["method"])
    with pytest.raises(OptionError, match="quick"):
        budget_options("fast", method)

"""Places for jobs: so many on the processor, so many on each GPU, and what the process of a job is given there."""

from __future__ import annotations

import pytest

from engine.core.settings import Settings
from engine.jobs.slots import Slot, gpus, slots_of


@pytest.fixture(autouse=True)
def _no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_without_a_gpu_every_job_is_for_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.jobs.slots.usable_cores", lambda: 8)
    assert slots_of(Settings()) == [Slot("cpu", ("", "cpu"), "auto", 0)]
    three = slots_of(Settings(cpu_jobs=3))
    assert [(slot.takes, slot.threads) for slot in three] == [(("", "cpu"), 2)] * 3  # they share the cores
    assert len(slots_of(Settings(cpu_jobs=3), 12)) == 12  # a backend may have more room than this machine


def test_with_gpus_models_run_there_and_the_rest_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    result = slots_of(Settings(gpu_jobs=2))
    assert [slot.name for slot in result] == ["gpu 2", "gpu 2", "gpu 5", "gpu 5", "cpu"]
    assert result[0].takes == ("", "gpu")
    payload = result[2].payload(Settings())
    assert payload["environment"] == {"CUDA_VISIBLE_DEVICES": "5"}  # the process sees that one alone
    last = result[-1].payload(Settings())
    assert (result[-1].takes, last["settings"]["device"], last["environment"]) == (("cpu",), "cpu", {"CUDA_VISIBLE_DEVICES": ""})


def test_a_device_that_is_set_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpus(Settings(device="cpu")) == []
    assert gpus(Settings(device="mps")) == []
    assert [slot.device for slot in slots_of(Settings(device="cuda:1"))] == ["cuda:1", "cpu"]

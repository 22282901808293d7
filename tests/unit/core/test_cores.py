"""The cores of a process: affinity, quotas of both versions of control groups, and threads that sleep while they wait."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from engine.core import cores

FREE = 1 << 20


def groups(root: Path, memberships: str, files: dict[str, str]) -> int:
    root.mkdir(exist_ok=True)
    (root / "self").write_text(memberships, encoding="utf-8")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    return cores.quota(root, root / "self")


@pytest.mark.parametrize(
    ("memberships", "files", "expected"),
    [
        ("0::/\n", {}, FREE),
        ("0::/\n", {"cpu.max": "max 100000\n"}, FREE),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"}, 3),
        ("4:memory:/x\n1:cpu,cpuacct:/\n0::/\n", {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n"}, FREE),
        (
            "1:cpu,cpuacct:/box\n",
            {"cpu,cpuacct/box/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n"},
            1,
        ),
        ("0::/\n", {"cpu.max": "not a number\n"}, FREE),
    ],
)
def test_quotas(tmp_path: Path, memberships: str, files: dict[str, str], expected: int) -> None:
    assert groups(tmp_path / "groups", memberships, files) == expected


def test_no_quota_is_known_outside_linux(tmp_path: Path) -> None:
    assert cores.quota(tmp_path, tmp_path / "missing") == FREE
    assert 1 <= cores.usable_cores() <= (os.cpu_count() or 1)


def test_threads_are_as_many_as_are_granted_and_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(cores, "quota", lambda: FREE)
    cores.share_cores()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert os.environ["GOMP_SPINCOUNT"] == cores.SPIN
    assert "OMP_NUM_THREADS" not in os.environ
    cores.share_cores(spin=False)  # a job inherits the environment of the studio
    assert "GOMP_SPINCOUNT" not in os.environ
    monkeypatch.setattr(cores, "usable_cores", lambda: 0)
    cores.share_cores()
    assert os.environ["OMP_NUM_THREADS"] == "0"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    cores.share_cores()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert "GOMP_SPINCOUNT" not in os.environ


def test_models_take_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 4)
    assert [cores.model_threads(threads) for threads in (0, 1, 4, 99_999)] == [4, 1, 4, 4]


def test_commands_share_the_cores() -> None:
    code = "import os; from engine.cli.main import main; main(['methods', '--json']); print(os.environ['OMP_WAIT_POLICY'])"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "PASSIVE"


def test_threads_that_each_ask_for_one_core_leave_the_number_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    inside, done = threading.Event(), threading.Event()
    seen: list[int] = []

    def work() -> None:  # begins while the other is inside, and ends after it
        with cores.one_thread():
            seen.append(torch.get_num_threads())
            inside.set()
            done.wait(300)
        seen.append(torch.get_num_threads())

    try:
        other = threading.Thread(target=work)
        with cores.one_thread():
            other.start()
            assert inside.wait(300)
        assert torch.get_num_threads() == 2
        done.set()
        other.join()
        assert seen == [1, 2]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)

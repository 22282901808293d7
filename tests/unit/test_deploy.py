"""The files in deploy/ name what there is: settings, extras, files, commands; and their linters find nothing."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.core.settings import Settings
from tests.bases import ROOT

yaml = pytest.importorskip("yaml")

DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("Dockerfile.*"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
EXPOSED_AT_MOST = 2.0  # of 10, by `systemd-analyze security`


def _files() -> Iterator[Path]:
    return (path for path in DEPLOY.rglob("*") if path.is_file())


def _tool(name: str) -> str:
    """A linter beside this Python or on the path; skips where there is none."""
    result = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if result is None:
        pytest.skip(f"{name} is not installed")
    return result


def _clean(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_setting_named_is_one() -> None:
    named = {name.lower() for path in _files() for name in re.findall(r"\bTAILORMT_([A-Z0-9_]+)", path.read_text("utf-8"))}
    assert {"home", "database_url", "artefacts", "ray_address"} <= named
    assert named <= set(Settings.__dataclass_fields__)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_an_image_is_made_of_what_there_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    match = re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)
    assert match is not None
    assert set(match[1].split(",")) <= set(extras)
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert f"!{name}\n" in sent, name
    assert "USER 10001" in text, "not as root"
    _clean(_tool("hadolint"), str(path))


def test_the_yaml_is_tidy() -> None:
    _clean(_tool("yamllint"), "-s", "-c", str(DEPLOY / ".yamllint"), str(DEPLOY))


def test_compose_follows_the_specification_and_its_parts_fit() -> None:
    file = DEPLOY / "compose.yaml"
    services: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    example = (DEPLOY / "compose.env.example").read_text(encoding="utf-8")
    for name in set(re.findall(r"\$\{(\w+)", file.read_text(encoding="utf-8"))):
        assert f"{name}=" in example
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    _clean(_tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(file))


def test_the_cluster_file_is_one_that_ray_takes() -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = yaml.safe_load((DEPLOY / "ray" / "cluster.yaml").read_text(encoding="utf-8"))
    validate_config(prepare_config(config))


def test_kubernetes_objects_name_each_other_rightly() -> None:
    objects = list(yaml.safe_load_all((DEPLOY / "ray" / "kuberay.yaml").read_text(encoding="utf-8")))
    kinds = {resource["kind"]: resource for resource in objects}
    cluster = kinds["RayCluster"]["spec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    templates = [*(group["template"] for group in groups), kinds["Deployment"]["spec"]["template"]]
    chosen = kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
    for template in templates:
        assert chosen.items() <= template["metadata"]["labels"].items()
        (container,) = template["spec"]["containers"]
        assert [next(iter(source.values()))["name"] for source in container["envFrom"]] == ["tailormt", "tailormt"]
        assert template["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "tailormt-data"
        assert template["spec"]["securityContext"]["runAsNonRoot"]
    assert kinds["PersistentVolumeClaim"]["metadata"]["name"] == "tailormt-data"
    address = kinds["ConfigMap"]["data"]["TAILORMT_RAY_ADDRESS"]
    assert address == f"{kinds['RayCluster']['metadata']['name']}-head-svc:6379"  # the operator makes this service


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_sound_and_shut(path: Path, tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path, encoding="utf-8")
    assert unit["Service"]["User"] == "tailormt"
    command = unit["Service"]["ExecStart"].split()[1]
    from engine.cli.main import parser

    assert parser().parse_args([command]).command == command
    tool = _tool("systemd-analyze")
    here = tmp_path / path.name  # with a program that is there
    here.write_text(path.read_text("utf-8").replace("/opt/tailormt/bin/tailormt", sys.executable), encoding="utf-8")
    _clean(tool, "verify", "--man=no", str(here))
    text = _clean(tool, "security", "--offline=true", str(path))
    level = re.search(r"exposure level for .*: ([0-9.]+)", text)
    assert level is not None
    assert float(level[1]) <= EXPOSED_AT_MOST

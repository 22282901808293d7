"""One typed settings object for the whole program, from file, environment and flags (later ones take precedence).

Environment: `TAILORMT_<NAME>`, for example `TAILORMT_HOME=/data/tailor`. File: `<home>/settings.toml`, with the same names in
lower case. Nothing else in the engine reads the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.core.devices import PRECISIONS
from engine.core.options import Options, describe, option
from engine.errors import OptionError, storage_errors

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings(Options):
    """Settings of the whole program."""

    home: str = option("", "Folder for the database, projects, plugins and unfinished work; empty: the user's data folder.")
    assets: str = option("", "Folder with base models, parsers and sample corpora; empty: the one that came with the program.")
    database_url: str = option("", "SQLAlchemy URL of the store; empty: SQLite in the home folder.")
    artefacts: str = option(
        "",
        "Where workers on several machines share samples, checkpoints and plugins: a folder, or s3://bucket/prefix; empty: "
        "only in the home folder.",
    )
    artefacts_endpoint: str = option(
        "", "Address of an S3-compatible service, such as http://minio:9000; empty: Amazon's. Keys come from AWS's own settings."
    )
    artefacts_seconds: float = option(
        5.0, "Seconds between two looks for a new checkpoint that other workers should have.", low=0.05
    )
    artefacts_keep_hours: float = option(
        24.0, "Hours that artefacts which nothing names any more are kept before they are collected.", low=0
    )
    parsers: str = option("", "Folder with stanza models; empty: the assets' parsers, then stanza's own folder.")
    first_base: str = option("en-zh", "Short name of the base that new projects in the studio start with.")
    device: str = option("auto", "Where models run: auto, cpu, cuda, cuda:1, mps.")
    precision: str = option("auto", "Arithmetic in training.", choices=("auto", "float32", "bfloat16"))
    base_precision: str = option(
        "float32",
        "Numbers that a base's weights are held in. int8 translates a quarter faster on a CPU with AVX-512 VNNI, and saves "
        "memory on a CUDA GPU; plugins cannot be trained over float16, nor over int8 on a GPU.",
        choices=PRECISIONS,
    )
    cpu_jobs: int = option(1, "Jobs that a worker does at once on the processor.", low=1, high=256)
    gpu_jobs: int = option(1, "Jobs that a worker does at once on each GPU.", low=1, high=64)
    batch_tokens: int = option(
        0,
        "Tokens in one batch where a base works without learning, as in back-translation and building a memory; lower it "
        "when memory is short. 0: 4,096, on a GPU 16,384.",
        low=0,
        high=1_000_000,
    )
    job_retries: int = option(
        3,
        "How often in a row a job is tried again by itself that lost its process or met an error that may pass, without "
        "getting further; 0: never.",
        low=0,
        high=1000,
    )
    retry_seconds: float = option(
        2.0, "Pause before a job is tried again; each further one is twice as long, up to ten minutes.", low=0.0, high=600
    )
    threads: int = option(0, "CPU threads for models, at most one per core; 0: all cores.", low=0, high=4096)
    backend: str = option(
        "local", "Where a worker's jobs run: on its own machine, or on the nodes of a Ray cluster.", choices=("local", "ray")
    )
    ray_address: str = option(
        "auto", "Address of the Ray cluster, such as 10.0.0.5:6379; auto: the one that this machine belongs to."
    )
    ray_actors: int = option(
        4, "Actors that a job on a Ray cluster spreads parsing and translation over, where there is room; 0: none.", low=0
    )
    gpus_per_job: float = option(
        1.0, "GPUs that a job or an actor takes on a Ray cluster; with 0.5 two share one.", low=0.01, high=64
    )
    local_worker: bool = option(True, "Whether the studio starts a worker on its machine where none is alive.")
    replicas: int = option(
        0, "Copies of the translator on a Ray cluster that the studio's interface for programs asks; 0: its own process.", low=0
    )
    host: str = option("127.0.0.1", "Address the studio listens on.")
    port: int = option(7860, "Port the studio listens on.", low=1, high=65535)
    max_upload_mib: int = option(200, "Largest file that may be uploaded, in MiB.", low=1)
    max_upload_files: int = option(100, "Most files of samples in one project of the studio.", low=1)
    server_paths: str = option(
        "auto",
        "Whether samples may be given in the studio by their path on its machine; auto: only while it listens on this "
        "machine alone.",
        choices=("auto", "on", "off"),
    )
    server_folders: tuple[str, ...] = option((), "Folders that such paths must lie in; empty: any that the studio's user may read.")
    max_line_chars: int = option(10_000, "Longest line taken from an upload, in characters; longer ones are skipped.", low=100)

    first_look: bool = option(
        True, "After an upload, translate a few sentences with what needs no training, before anything is chosen."
    )
    translation_seconds: float = option(
        600.0,
        "Seconds after which a request for a translation is cancelled, whether it waits or is at work; 0: never. Documents are "
        "jobs, which take as long as they need.",
        low=0,
    )
    loaded_bases: int = option(2, "Bases that the studio keeps in memory; the one used longest ago makes room.", low=1, high=64)
    loaded_plugins: int = option(
        6, "Plugins, with their memories, that a translator keeps loaded; the one used longest ago makes room.", low=1
    )
    api_tokens: str = option(
        "auto",
        "Whether programs need a token for the REST interface; auto: unless the studio listens on this machine alone; never "
        "counts where nobody signs in.",
        choices=("auto", "always", "never"),
    )
    sign_in: str = option(
        "auto",
        "Whether people sign in; auto: unless the studio listens on this machine alone; off: never, also where others can "
        "reach it.",
        choices=("auto", "on", "off"),
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Addresses or networks of proxies before the studio, such as 127.0.0.1 or 10.0.0.0/8: from these alone the address of a "
        "client and https are taken out of X-Forwarded-For and X-Forwarded-Proto.",
    )
    session_hours: int = option(24 * 14, "Hours until somebody who signed in has to do so again.", low=1, high=24 * 366)
    sign_in_attempts: int = option(
        10,
        "Wrong passwords in five minutes for one account from one address, before a pause; three times as many from one "
        "address, ten times as many for one account.",
        low=1,
    )
    api_rate: int = option(
        1200,
        "Requests a minute that the REST interface takes with one token, and from one address; 0: any number. Not counted "
        "where no token is needed.",
        low=0,
    )
    max_request_mib: int = option(1000, "Largest request to the studio with all its files, in MiB.", low=1)
    log_format: str = option("text", "Lines of the logs: text for people, or json, one object per line.", choices=("text", "json"))
    metrics: str = option(
        "auto",
        "Who may read /metrics; auto: an admin, tokens of the scope metrics or admin, and this machine where nobody signs in; "
        "local: this machine always, which is wrong where a proxy runs on it; off: nobody.",
        choices=("auto", "local", "open", "off"),
    )
    comet: str = option(
        "",
        "A COMET checkpoint (model.ckpt) on this machine, a pickle that you trust: evaluations with sources then give COMET too.",
    )
    comet_program: str = option(
        "comet-score", "Unbabel's program that scores with it, in an environment of its own: a path, or a name on PATH."
    )
    endpoints: tuple[str, ...] = option(
        (), "Addresses of services that plugins may send sentences to; a plugin that calls any other is refused."
    )

    @property
    def home_dir(self) -> Path:
        """The data folder, created if missing. Raises StorageError if that fails."""
        path = home_path(self.home)
        with storage_errors("the data folder", path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def server_paths_allowed(self) -> bool:
        """Whether the studio accepts paths on its machine."""
        if self.server_paths == "auto":
            return self.host in ("127.0.0.1", "localhost", "::1") or self.host.startswith("127.")
        return self.server_paths == "on"

    @property
    def assets_dir(self) -> Path:
        return Path(self.assets).expanduser() if self.assets else ROOT / "assets"

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home_dir / 'tailor.db'}"

    @property
    def parser_dirs(self) -> tuple[Path, ...]:
        """Folders that may hold stanza models, in order of preference; downloads go to the last."""
        if self.parsers:
            return (Path(self.parsers).expanduser(),)
        stanza_dir = Path(os.environ.get("STANZA_RESOURCES_DIR", Path.home() / "stanza_resources"))
        return (self.assets_dir / "parsers", stanza_dir, self.home_dir / "parsers")


def home_path(home: str) -> Path:
    """The path of the data folder, which may not exist yet."""
    if home:
        return Path(home).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("tailor-mt", appauthor=False))


@cache
def _from_environment(environment: tuple[tuple[str, str], ...]) -> Settings:
    values: dict[str, str] = {}
    names = {item.name for item in describe(Settings)}
    variables = {key[9:].lower(): value for key, value in environment}
    file = home_path(variables.get("home", "")) / "settings.toml"
    if file.exists():
        try:
            values |= tomllib.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # ValueError: also huge numbers and invalid UTF-8
            raise OptionError("{file} is not valid TOML: {error}", file=file, error=error) from None
    values |= {key: value for key, value in variables.items() if key in names}
    return Settings.from_mapping(values)


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The current settings. Raises OptionError on a bad value or an unknown key in the file."""
    environment = os.environ if environment is None else environment
    return _from_environment(tuple(sorted((k, v) for k, v in environment.items() if k.startswith("TAILORMT_"))))

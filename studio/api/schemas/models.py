"""Requests and responses of /api/v1, for the OpenAPI document. Times are ISO 8601 in UTC, durations seconds, sizes bytes."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from engine.workflows.customize.request import CustomizeRequest, candidates
from studio.api.errors import MOST_CHARACTERS

Item = TypeVar("Item")
Name = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"\S")]
Code = Annotated[str, StringConstraints(min_length=2, max_length=35, pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
Text = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
STATES = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted"]


class Given(BaseModel):
    """Base class of requests: unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


# An object whose keys are defined by the engine or a method, not by the API.
JsonObject = dict[str, object]


class Page(BaseModel, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    total: int = Field(description="How many there are in all, with this filter.")
    offset: int = Field(description="How many were passed over.")


class Status(BaseModel):
    """The state of the studio, and the caller's token and scopes."""

    version: str
    device: str = Field(description="The device and its memory, in words.")
    workers: int = Field(description="Worker processes that do jobs.")
    jobs_waiting: int
    jobs_running: int
    token: str = Field(description="The name of the token that was shown; empty without one.")
    scopes: list[str] = Field(description="What this caller may do.")


# -- projects


class Project(BaseModel):
    """A project: a language direction, a frozen base, and the samples and plugins for them."""

    id: int
    name: str
    source: str = Field(description="Language that is translated from, as BCP-47 tag.", examples=["en"])
    target: str = Field(description="Language that is translated to: that of the samples.", examples=["zh"])
    base: str = Field(description="Short name of the base.")
    created: datetime.datetime
    updated: datetime.datetime
    sentences: int | None = Field(description="Sentences kept of the samples; null before they were read.")
    phrases: int | None = Field(description="Phrases found; null before.")
    plugins: int
    runs: int
    default_plugin: int | None = Field(description="Plugin that is used where none is named; null: the base alone.")


class ProjectRequest(Given):
    name: Name
    source: Code = Field(examples=["en"])
    target: Code = Field(examples=["zh"])
    base: Reference | None = Field(None, description="Short name of a base; without, the first that knows the languages.")


class ProjectChange(Given):
    name: Name


# -- samples


class SampleFile(BaseModel):
    name: str
    bytes: int
    domain: str = Field(description="Its domain label; empty where none was given.")


class Job(BaseModel):
    """A job in the queue. It runs in the background and can be resumed after it was stopped."""

    id: int
    project: int | None
    kind: str = Field(description="`prepare` reads samples and finds phrases, `customize` makes a plugin.")
    state: STATES
    step: str = Field(description="What it is doing, in words.")
    step_index: int = Field(description="Which step that is, from 0.")
    steps: int
    fraction: float = Field(description="How much is done, 0 to 1.")
    eta: float | None = Field(description="Seconds left in this step, where that can be told.")
    note: str
    metrics: JsonObject = Field(description="The latest figures of the work.")
    error: str = Field(description="Why it failed, in a sentence.")
    result: JsonObject
    attempt: int = Field(description="1 at first, one more at each resume.")
    method: str = Field(description="Of a run: the method.")
    budget: str = Field(description="Of a run: the budget.")
    created: datetime.datetime
    started: datetime.datetime | None
    finished: datetime.datetime | None
    cancel_requested: bool
    owner: str = Field(description="Whose turn it takes; empty where nobody signs in.")
    priority: int = Field(
        description="What is higher begins first; 20 where somebody waits, 0 for long work, -10 for what starts by itself."
    )
    device: str = Field(description="cpu or gpu where it needs one of them; empty for wherever models run.")
    not_before: datetime.datetime | None = Field(description="When it is tried again, where it waits for that.")
    retries: int = Field(description="Attempts that ended without getting further, one after the other.")


class Step(BaseModel):
    """A step of a job."""

    name: str
    state: STATES
    begun: str = Field(description="When the latest attempt at it began, ISO 8601; empty before.")
    attempt: int
    fraction: float = Field(description="How much of it is done, 0 to 1.")
    error: str


class Samples(BaseModel):
    """A project's sample files and the report on reading them."""

    files: list[SampleFile]
    report: JsonObject = Field(description="The import report: kept and skipped by reason, languages, warnings.")
    job: Job | None = Field(description="The job that reads them, or read them last.")
    refused: dict[str, str] = Field(description="Uploaded files that were not taken, with the reason.")


class SampleChange(Given):
    domain: Annotated[str, StringConstraints(max_length=80)] = Field(description="The file's domain; empty for none.")


class PairRequest(Given):
    text: Text = Field(examples=["The rain stopped."])
    translation: Text = Field(examples=["雨停了。"])
    source: Code | None = Field(None, description="Checked against the project's, where it is given.")
    target: Code | None = Field(None, description="Checked against the project's, where it is given.")
    replaces: Text = Field("", description="An earlier translation of the text, which this one replaces.")


class PairAdded(BaseModel):
    added: bool = Field(description="False: the pair was there already.")
    pairs: int = Field(description="How many edited translations the project has.")
    job: Job | None = Field(description="The job that reads the samples anew; null where nothing changed or is to be read yet.")


class UseSamples(Given):
    names: Annotated[list[Reference], Field(min_length=1, max_length=20)] = Field(
        description="Names of bundled corpora, as /samples lists them."
    )
    accept_terms: bool = Field(False, description="Accept their licences, where these restrict the use.")


class Segment(BaseModel):
    text: str
    source: str | None = None
    file: str = ""
    line: int = 0
    domain: str = ""


class BundledSample(BaseModel):
    name: str
    title: str
    kind: str
    source: str
    target: str
    lines: int
    license: str
    restricted: bool = Field(description="Whether its licence restricts the use and must be accepted.")
    goes_with: list[str]


class Phrase(BaseModel):
    text: str
    length: int = Field(description="Tokens of the parser.")
    count: int = Field(description="How often it is in the samples.")
    label: str = Field(description="Its kind, as NP, nsubj, statistical.")
    layer: int = Field(description="The decoder layer that reads it, from 0; -1 where that is not told.")
    source: str = Field(description="Its back-translation; empty before training made one.")


# -- runs


class RunRequest(Given):
    """A training. Settings that are not given come from the budget, then from the defaults of the method."""

    method: Reference | None = Field(
        None, description="A method of /methods; auto, as without one: several are tried, and the best on held-out samples is kept."
    )
    budget: Literal["quick", "balanced", "best"] = "balanced"
    base: Reference | None = Field(
        None, description="Short name of a base, which becomes the project's; without, the project's own."
    )
    method_options: JsonObject = Field({}, description="Settings of the method, as /methods/{name} describes them.")
    training_options: JsonObject = Field({}, description="Settings of training, as /options/training describes them.")
    knn: bool = Field(False, description="A datastore for kNN decoding beside what the method makes.")
    knn_options: JsonObject = Field({}, description="Settings of kNN decoding, as /methods/knn describes them.")

    def request(self) -> CustomizeRequest:
        """The requested run without its base. Raises OptionError on an unknown method or setting or an invalid value, before
        anything is queued.
        """
        request = CustomizeRequest.from_mapping(self.model_dump(exclude={"base"}, exclude_none=True))
        candidates(request)
        return request


class Curve(BaseModel):
    rows: list[JsonObject] = Field(description="Figures by update: loss, validation loss, learning rate, tokens/s.")


class Option(BaseModel):
    """A setting."""

    name: str
    type: Literal["string", "integer", "number", "boolean"]
    many: bool = Field(description="Whether it takes a list.")
    optional: bool = Field(description="Whether it may be null.")
    default: Any
    help: str
    choices: list[Any] | None
    low: float | None
    high: float | None
    advanced: bool


class Method(BaseModel):
    name: str
    title: str
    summary: str
    paper: str = Field(description="Where it comes from.")
    needs_bilingual: bool
    needs_domains: int
    needs_endpoint: bool
    trains: bool
    offers: list[str] = Field(description="Of strength, likelihood, reads, proportions, swap.")
    options: list[Option]
    json_schema: JsonObject = Field(description="The options as JSON Schema.")


class Budget(BaseModel):
    name: str
    method: JsonObject
    training: JsonObject


class Base(BaseModel):
    """A base model on this machine."""

    name: str
    family: str
    languages: list[str]
    decoder_layers: int
    d_model: int
    parameters: int
    bytes: int
    license: str
    shipped: bool


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]


# -- plugins


class Plugin(BaseModel):
    """A plugin: a trained customization of a base, stored in one file."""

    id: int
    project: int
    name: str
    method: str
    job: int | None
    version: int = Field(description="Of the plugins of this name in its project: 1 is the oldest that is there.")
    tags: list[str]
    default: bool = Field(description="Whether the project uses it where none is named.")
    available: bool = Field(description="Whether its bundle is where it was written.")
    bytes: int | None
    base_fingerprint: str
    metrics: JsonObject
    created: datetime.datetime


class PluginCard(BaseModel):
    """The card of a plugin's bundle."""

    title: str
    license: str
    license_note: str
    body: str = Field(description="The card, as Markdown.")
    config: JsonObject = Field(description="Method, settings, base, provenance and files.")


class PluginCheck(BaseModel):
    """The result of one check of a bundle."""

    name: str
    title: str
    ok: bool
    sentence: str


class PluginChange(Given):
    name: Name | None = None
    tags: Annotated[list[Annotated[str, StringConstraints(max_length=40)]], Field(max_length=12)] | None = None


class BlendPart(Given):
    plugin: Number
    weight: Annotated[float, Field(ge=0, le=1)] = Field(1.0, description="1: as trained, 0.5: half as strongly.")


class BlendRequest(Given):
    name: Name
    parts: Annotated[list[BlendPart], Field(min_length=2, max_length=4)]


class DefaultRequest(Given):
    plugin: Number | None = Field(description="A plugin of this project; null for the base alone.")

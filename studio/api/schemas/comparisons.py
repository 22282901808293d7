"""Requests and responses of the operations on comparisons, described for the OpenAPI document."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from studio.api.schemas import models
from studio.services.terminology import MOST_CHARACTERS

Title = Annotated[str, StringConstraints(max_length=120)]
Strength = Annotated[float, Field(ge=0, le=2)]


Terminology = Annotated[bool, Field(description="Enforce the terms of the project.")]


class ComparisonRequest(models.Given):
    texts: Annotated[list[models.Text], Field(min_length=1, max_length=500)]
    title: Title = ""
    plugin: models.Reference | None = Field(None, description="Number or name; without, the project's default.")
    strength: Strength = 1.0
    terminology: Terminology = False


class SystemRequest(models.Given):
    plugin: models.Reference = Field(description="Number or name of a plugin of the project.")
    strength: Strength = 1.0


class SheetRequest(models.Given):
    texts: Annotated[list[models.Text], Field(min_length=1, max_length=10_000)]
    references: list[models.Text] | None = Field(None, description="As many as texts; an empty one is none.")
    systems: Annotated[list[SystemRequest], Field(max_length=3)] = Field(
        [], description="Plugins beside the base alone; none: the project's default."
    )
    title: Title = ""
    terminology: Terminology = False


class ComparisonChange(models.Given):
    title: models.Name | None = None
    kept: bool | None = Field(None, description="A kept one does not change any more, since somebody has its address.")


class StrengthRequest(models.Given):
    strength: Annotated[float, Field(ge=0, le=1)]


class System(BaseModel):
    """A system of a comparison: the base alone, which comes first, or a plugin with a strength."""

    name: str
    plugin_id: int | None
    method: str
    strength: float


class Comparison(BaseModel):
    id: int
    project: int
    title: str
    file: str = Field(description="The file that its sentences came from; empty for typed ones.")
    sentences: int
    translated: int = Field(description="Sentences that all systems have translated.")
    different: int = Field(description="Of these, those that a plugin translated otherwise than the base.")
    references: int = Field(description="Sentences with a reference.")
    systems: list[System]
    terminology: bool = Field(description="Whether the terms of the project are enforced in the translations.")
    kept: bool = Field(description="Whether another strength makes a copy of it.")
    job: int | None = Field(description="The job that translates and measures it; null where there is none.")
    created: datetime.datetime


class ComparisonRows(Comparison):
    rows: list[models.JsonObject] = Field(description="Each with source, vanilla and customized.")


class ComparisonMade(ComparisonRows):
    changed: int = Field(description="Sentences whose two translations differ.")


class ComparisonQueued(BaseModel):
    comparison: Comparison
    job: models.Job
    notes: list[str] = Field(description="How the files were understood, in sentences.")


class Line(BaseModel):
    place: int = Field(description="From 0.")
    source: str
    reference: str | None
    texts: list[str | None] = Field(description="One a system; null where it is not made yet.")
    flags: list[str] = Field(description="One a text, as of /translate; empty where nothing is odd.")
    scores: list[float | None] = Field(description="0 to 100, of sentences with a reference.")
    difference: float | None = Field(description="From the base alone, of the plugin that differs most, 0 to 1.")
    change: float | None = Field(description="Of the score, the largest.")


class Lines(BaseModel):
    """A page of a comparison's sentences."""

    systems: list[System]
    figures: models.JsonObject
    items: list[Line]
    total: int
    offset: int


class Figure(BaseModel):
    """A metric of a system with its 95 % interval; `p` is the p-value of a paired bootstrap test against the base alone."""

    kind: str = Field(description="text: these sentences; general: general text, which shows forgetting.")
    metric: str
    title: str
    system: str
    score: float
    low: float
    high: float
    before: float | None = Field(description="The base's score.")
    p: float | None
    p_ar: float | None = Field(description="The same by approximate randomisation, where it was asked for.")


class Terms(BaseModel):
    text: str = Field(description="One a line: a target term, or source term, tab or =, target term.")


class TermsRequest(models.Given):
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]


class MemoryRead(BaseModel):
    layer: int = Field(description="From 0; -1: the output.")
    place: str
    share: float = Field(description="What came from memory and not from the base, 0 to 1.")
    items: list[models.JsonObject]


class WordCandidate(BaseModel):
    text: str = Field(description="Empty: the end of the sentence.")
    probability: float = Field(description="0 to 1.")


class WordReading(BaseModel):
    """The memory entries read for a word, or the reason in `why` if there are none; and the words that the base and the plugin
    consider at its position, likeliest first.
    """

    word: str
    start: int
    end: int
    places: list[MemoryRead]
    why: str
    by_base: list[WordCandidate]
    by_plugin: list[WordCandidate]

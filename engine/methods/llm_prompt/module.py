"""A plugin without weights: settings and samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from engine.methods.llm_prompt.client import Usage
from engine.methods.llm_prompt.config import LlmPromptConfig
from engine.methods.llm_prompt.prompt import Examples


class PromptModule(nn.Module):
    """The samples and settings from which requests are made, and the usage of the last translation."""

    def __init__(self, examples: Examples, config: LlmPromptConfig) -> None:
        super().__init__()
        self.examples = examples
        self.config: Any = config
        self.usage = Usage()
        self.file: Path | None = None

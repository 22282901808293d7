"""Settings of prompting a large language model. They contain the name of the key's environment variable, never the key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.core.options import Options, option
from engine.errors import OptionError

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class LlmPromptConfig(Options):
    """Prompting a large language model."""

    base_url: str = option("http://localhost:8000/v1", "Address of an OpenAI-compatible service, up to and with its version (/v1).")
    model: str = option("", "Name of the model at the service.")
    key_variable: str = option(
        "OPENAI_API_KEY",
        "Environment variable that contains the service's key, with a name ending in API_KEY; empty: the "
        "service needs none. The key itself is never stored.",
    )
    examples: int = option(8, "Samples shown in each request.", low=0, high=200)
    choice: str = option(
        "nearest", "Which samples: those whose sources share most with the sentence, or random ones.", choices=("nearest", "random")
    )
    instruction: str = option("", "Additional instruction to the model, for example: Write like a court reporter.")
    draft: bool = option(False, "Show the model the base's own translation of the sentence as well.")
    temperature: float | None = option(
        0.0, "Randomness of the answer; none: the service's own (some models accept no other).", low=0, high=2
    )
    max_tokens: int | None = option(None, "Longest answer in tokens; none: the service's own limit.", low=1)
    concurrency: int = option(4, "Requests under way at a time.", low=1, high=64)
    timeout: float = option(60.0, "Seconds that a request may take.", low=0.1, high=3600, advanced=True)
    retries: int = option(
        5, "Retries of a request that is temporarily refused (429), fails at the service (5xx) or times out.",
        low=0, high=20, advanced=True,
    )  # fmt: skip
    backoff: float = option(
        1.0, "Seconds before the second attempt; doubled for each further one, up to a minute.", low=0, high=60, advanced=True
    )
    input_price: float = option(0.0, "Price of a million tokens sent, in your currency, for the cost that is shown.", low=0)
    output_price: float = option(0.0, "Price of a million tokens in answers, in your currency.", low=0)
    seed: int = option(1, "Seed of random samples.", low=0, advanced=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise OptionError(
                "base_url: {base_url!r} is not an address. Write it as https://api.example.com/v1.", base_url=self.base_url
            )
        if address.username or address.password or address.query:
            raise OptionError("base_url: it must not contain a name, key or query. Put the key into an environment variable.")
        if address.scheme == "http" and address.hostname not in LOCAL:
            raise OptionError(
                "base_url: {base_url} is not encrypted. Use https for a service on another machine.", base_url=self.base_url
            )
        if self.key_variable and not re.fullmatch(r"[A-Z][A-Z0-9_]*API_KEY|API_KEY", self.key_variable):
            raise OptionError(  # the value is not shown: it may be a key
                "key_variable: this is not the name of a variable ending in API_KEY. Specify the name, never the key itself."
            )

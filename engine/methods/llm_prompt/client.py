"""Requests to an OpenAI-compatible service: concurrent, with retries, counting tokens and cost."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.core.progress import Progress
from engine.errors import MissingError, OptionError, TailorError, TransientError
from engine.methods.llm_prompt.config import LlmPromptConfig

if TYPE_CHECKING:
    import httpx

AGAIN = (408, 409, 425, 429, 500, 502, 503, 504, 529)
LONGEST_WAIT = 60.0  # seconds


@dataclass
class Usage:
    """Requests and the token counts reported by the service."""

    requests: int = 0
    sent: int = 0  # tokens
    answered: int = 0  # tokens

    def cost(self, config: LlmPromptConfig) -> float:
        """The cost in the currency of the settings' prices."""
        return (self.sent * config.input_price + self.answered * config.output_price) / 1e6

    def note(self, config: LlmPromptConfig) -> str:
        """A summary for display, such as `12,345 tokens, cost 0.0210`; without the cost if no prices are set."""
        text = f"{self.sent + self.answered:,} tokens"
        return f"{text}, cost {self.cost(config):.4f}" if config.input_price or config.output_price else text


def check_allowed(config: LlmPromptConfig, endpoints: Sequence[str]) -> None:
    """Raises OptionError unless a model is named and the user allows sentences to be sent to the service.

    A plugin may come from a third party, so the user, not the plugin, decides where sentences may be sent.
    """
    if not config.model:
        raise OptionError("model: no model is named. Specify a model by the name that the service uses.")
    if config.base_url.rstrip("/") not in [address.rstrip("/") for address in endpoints]:
        raise OptionError(
            "This plugin sends your sentences to {base_url}, which you have not allowed. Set "
            "TAILORMT_ENDPOINTS={base_url} to allow it.",
            base_url=config.base_url,
        )


class Service:
    """A service and its key. The key is read from the environment and never written to a file, log or message."""

    def __init__(self, config: LlmPromptConfig) -> None:
        self.config = config
        self.usage = Usage()
        self._key = os.environ.get(config.key_variable, "").strip()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        if config.key_variable and not self._key:
            raise MissingError(
                "The service at {base_url} needs a key: set the environment variable {key_variable}.",
                base_url=config.base_url,
                key_variable=config.key_variable,
            )

    def ask(self, bodies: Sequence[Mapping[str, Any]], progress: Progress) -> list[str]:
        """The answer to each request, in order. Raises TailorError if a request fails, or Cancelled."""
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        answers = [""] * len(bodies)
        with (
            httpx.Client(timeout=self.config.timeout, headers=headers) as client,
            ThreadPoolExecutor(self.config.concurrency) as pool,
        ):
            indices = {pool.submit(self.answer, client, body): i for i, body in enumerate(bodies)}
            pending: set[Future[str]] = set(indices)
            try:
                while pending:
                    progress.advance(len(bodies) - len(pending), len(bodies), self.usage.note(self.config))
                    done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                    for future in done:
                        answers[indices[future]] = future.result()
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        progress.advance(len(bodies), len(bodies), self.usage.note(self.config))
        return answers

    def answer(self, client: httpx.Client, body: Mapping[str, Any]) -> str:
        """The text of the answer to a request, with retries. Raises TransientError after the last attempt."""
        import httpx

        config, last = self.config, ""
        for attempt in range(config.retries + 1):
            hint = None
            try:
                result = client.post(f"{config.base_url.rstrip('/')}/chat/completions", json=body)
                if result.status_code not in AGAIN:
                    return self.read(result)
                last, hint = f"status {result.status_code}", result.headers.get("retry-after")
            except httpx.TimeoutException:
                last = f"nothing within {config.timeout:g} seconds"
            except httpx.TransportError as error:
                last = self.hidden(str(error)) or type(error).__name__
            if attempt < config.retries and self._stop.wait(pause(config.backoff, attempt, hint)):
                break
        raise TransientError(
            "The service at {base_url} did not answer in {retries} attempts (last: {last}). Try again later.",
            base_url=config.base_url, retries=config.retries + 1, last=last,
        )  # fmt: skip

    def read(self, response: httpx.Response) -> str:
        """The text in a response, which is added to `usage`. Raises TailorError if it is an error or has an unexpected format."""
        config = self.config
        if response.status_code in (401, 403):
            raise TailorError(
                "The service at {base_url} does not accept the key in {key_variable} (status {status_code}). Set another one.",
                base_url=config.base_url,
                key_variable=config.key_variable or "no variable",
                status_code=response.status_code,
            )
        if not response.is_success:
            raise TailorError(
                "The service at {base_url} refuses the request (status {status_code}: {hidden}). Check base_url and model.",
                base_url=config.base_url,
                status_code=response.status_code,
                hidden=self.hidden(" ".join(response.text.split()))[:200],
            )
        try:
            data = response.json()
            text = data["choices"][0]["message"]["content"]
            usage = data.get("usage") or {}
            sent, answered = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
            if not isinstance(text, str):
                raise TypeError
        except (ValueError, LookupError, TypeError, AttributeError):
            raise TailorError(
                "The service at {base_url} does not answer in OpenAI's format. Check base_url.", base_url=config.base_url
            ) from None
        with self._lock:
            self.usage.requests += 1
            self.usage.sent += sent
            self.usage.answered += answered
        return text

    def hidden(self, text: str) -> str:
        """The text with the key masked."""
        return text.replace(self._key, "…") if self._key else text


def pause(backoff: float, attempt: int, hint: str | None) -> float:
    """Seconds before the next attempt: as the service requests in `hint`, otherwise exponential backoff with jitter."""
    try:
        if hint is not None:
            return min(LONGEST_WAIT, max(0.0, float(hint)))
    except ValueError:
        pass  # a date, which is ignored
    return min(LONGEST_WAIT, backoff * 2**attempt) * random.uniform(0.75, 1.25)

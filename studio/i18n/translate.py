"""The language of the interface: English from the code, Chinese from `locale/zh.po`.

Code contains English messages and calls `tr` where a text is produced, so that one process serves readers of both languages. The
language comes from the request: `?lang=zh` in the address, else the cookie set by the switch in the frame, else the browser's
Accept-Language. Components are built once, in English; `localized_config` translates their configuration when it is sent to a
browser. Messages of the engine are data, a template with values (`engine.messages`), rendered by `translate_message`. A message
without a translation stays English. User-defined names and machine translations are never translated.
"""

from __future__ import annotations

import contextlib
import datetime
import html
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.messages import Message as EngineMessage
from engine.messages import without_paths

LOCALE = Path(__file__).parent / "locale"
LANGUAGE_SCRIPT = Path(__file__).parents[1] / "static" / "language.js"
LANGUAGES = {"en": "EN", "zh": "中文"}
TAGS = {"en": "en", "zh": "zh-CN"}  # for the page's `lang`
COOKIE = "tailormt_language"
YEAR = 365 * 86400
CONTEXT = "\x04"  # between a message's context and the message, as in gettext's compiled catalogs
HAN = re.compile("[\u4e00-\u9fff]")

_asked: ContextVar[str] = ContextVar("language of the request", default="en")


# -- the reader's language


def language() -> str:
    """The language of the current reader: `en` or `zh`; English if there is none, as in a job."""
    request = _event()
    if request is None:
        return _asked.get()
    code = vars(request).get("tm_language")
    if code is None:  # cached, as a page asks hundreds of times
        code = vars(request)["tm_language"] = chosen_of(request)
    return str(code)


def _event() -> Any:
    """Gradio's request inside an event handler. Its queue runs handlers in separate tasks, which have no other request context."""
    context = sys.modules.get("gradio.context")  # not imported here: without it, there are no events
    return context.LocalContext.request.get(None) if context is not None else None


def chosen_of(request: Any) -> str:
    """The language of a request. `request`: any object with `headers` and `query_params`."""
    try:
        headers = {str(name).lower(): str(value) for name, value in dict(request.headers).items()}
        requested = str(dict(request.query_params).get("lang", ""))
    except (AttributeError, TypeError, ValueError):
        return "en"
    return choose(requested, headers.get("cookie", ""), headers.get("accept-language", ""))


def choose(requested: str, cookie: str, accepted: str) -> str:
    """The language of the address parameter, else of the cookie, else the browser's first supported one, else English."""
    for candidate in (requested, _cookie(cookie)):
        if code := _known(candidate):
            return code
    weighed = []
    for index, part in enumerate(accepted.split(",")):
        name, _, weight = part.strip().partition(";q=")
        with contextlib.suppress(ValueError):
            weighed.append((-float(weight or 1), index, name))
    return next((code for _, _, name in sorted(weighed) if (code := _known(name))), "en")


def _known(code: str) -> str:
    primary = re.split("[-_]", code.strip().lower(), maxsplit=1)[0]
    return primary if primary in LANGUAGES else ""


def _cookie(header: str) -> str:
    try:
        result = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return result.value if result else ""


@contextlib.contextmanager
def speaking(code: str) -> Iterator[None]:
    """Translate everything within the context into this language."""
    token = _asked.set(code)
    try:
        yield
    finally:
        _asked.reset(token)


# -- messages


@cache
def messages(code: str) -> Mapping[str, str]:
    """{English: translation} for a language; singular and plural messages both map to the single Chinese form."""
    import polib

    file = LOCALE / f"{code}.po"
    if not file.is_file():
        return {}
    result: dict[str, str] = {}
    for entry in polib.pofile(str(file)):
        if entry.obsolete:
            continue
        if entry.msgid_plural:
            form = entry.msgstr_plural.get(0, "")
            result |= {entry.msgid: form, entry.msgid_plural: form} if form else {}
        elif entry.msgstr:
            result[f"{entry.msgctxt}{CONTEXT}{entry.msgid}" if entry.msgctxt else entry.msgid] = entry.msgstr
    return result


def mark(message: str) -> str:
    """Return the message unchanged; marks it for extraction, to be translated by `tr` elsewhere."""
    return message


def tr(message: str, /, **values: object) -> str:
    """The message in the reader's language with its `{placeholders}` filled in."""
    code = language()
    result = message if code == "en" else messages(code).get(message, message)
    if not values:
        return result
    return result.format(**values) if code == "en" else _filled(result, values)


def trc(context: str, message: str, /) -> str:
    """A word in the reader's language whose translation depends on its `context` (gettext's msgctxt)."""
    code = language()
    return message if code == "en" else messages(code).get(f"{context}{CONTEXT}{message}", message)


def translate_message(message: str) -> str:
    """A message of the engine in the reader's language: its template is translated and its values, which may be messages
    themselves, are filled in. Text without a template, as in rows of earlier versions, is looked up as it is. Server paths are
    removed.
    """
    code, message = language(), without_paths(message)
    if code == "en" or not message:
        return message
    if not isinstance(message, EngineMessage):
        return messages(code).get(message, message)
    result = messages(code).get(message.template)
    if result is None or not message.params:
        return result or message
    values = {
        name: translate_message(value) if isinstance(value, EngineMessage) else value for name, value in message.params.items()
    }
    try:
        return _filled(result, values)
    except (KeyError, TypeError, ValueError):  # values stored by another version
        return message


def _filled(message: str, values: Mapping[str, object]) -> str:
    """The message with its values, with a space between Chinese characters and the Latin letters or digits of a value."""
    result, formatter = "", Formatter()
    for text, name, form, conversion in formatter.parse(message):
        result = _joined(result, text)
        if name is not None:
            value = formatter.convert_field(values[name], conversion)
            result = _joined(result, format(value, form or ""))
    return result


def _joined(first: str, second: str) -> str:
    gap = " " if first and second and _mixed(first[-1], second[0]) else ""
    return f"{first}{gap}{second}"


def _mixed(a: str, b: str) -> bool:
    han, latin = (HAN.match(a), HAN.match(b)), (a.isascii() and a.isalnum(), b.isascii() and b.isalnum())
    return bool((han[0] and latin[1]) or (latin[0] and han[1]))


def trn(singular: str, plural: str, count: int, /, **values: object) -> str:
    """As `tr`, for a message with singular and plural forms; `{count}` is the number with thousands separators."""
    return tr(singular if count == 1 else plural, **{"count": f"{count:,}", **values})


def percent(share: float) -> str:
    """A share as a whole percentage: `40 %`."""
    return f"{100 * share:.0f}\u00a0%"


def span(seconds: float | None) -> str:
    """A duration as formatted by `engine.core.progress.duration`: `6 min`, `6 分钟`."""
    from engine.core.progress import duration

    text = duration(seconds)
    if language() == "en":
        return text
    units = {"s": tr("s"), "min": tr("min"), "h": tr("h"), "unknown": tr("unknown")}
    return re.sub("[a-z]+", lambda match: units.get(match[0], match[0]), text)


def moment(when: datetime.datetime) -> str:
    """A day and time without the year: `21 Nov 12:30`, `11月21日 12:30`."""
    if language() == "zh":
        return f"{when.month}月{when.day}日 {when:%H:%M}"
    return f"{when:%d %b %H:%M}"


def day(when: datetime.date) -> str:
    """A date: `12 March 2026`, `2026年3月12日`."""
    if language() == "zh":
        return f"{when.year}年{when.month}月{when.day}日"
    return f"{when.day} {when:%B %Y}"


def together(*texts: str) -> str:
    """Non-empty sentences joined with the spacing of the reader's language."""
    return ("" if language() == "zh" else " ").join(text for text in texts if text)


def listed(words: list[str]) -> str:
    """Words as a list in the reader's language: `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    if language() == "zh":
        return _joined(_joined("、".join(words[:-1]), "和"), words[-1])
    return f"{', '.join(words[:-1])} and {words[-1]}"


# -- components, which are built once

TEXTS = ("label", "placeholder", "info")
BUTTONS = ("button", "uploadbutton", "downloadbutton")
PIECE = re.compile(r"<[^<>]*>|[^<]+")
ATTRIBUTE = re.compile(r' (aria-label|placeholder|title)="([^"]+)"')


def localized_config(config: dict[str, Any]) -> dict[str, Any]:
    """Gradio's configuration of all components in the reader's language; the original is not modified."""
    code = language()
    if code == "en" or not config.get("components"):
        return config
    return {**config, "components": [_component(component) for component in config["components"]]}


def _component(component: dict[str, Any]) -> dict[str, Any]:
    props = component.get("props")
    if not isinstance(props, dict):
        return component
    new = dict(props)
    for name in TEXTS:
        if isinstance(new.get(name), str):
            new[name] = tr(new[name])
    kind, value = str(component.get("type", "")), new.get("value")
    if isinstance(value, str):
        if kind in BUTTONS:
            new["value"] = tr(value)
        elif kind == "html":
            new["value"] = translated_html(value)
    if isinstance(new.get("choices"), list):
        new["choices"] = [[tr(pair[0]), *pair[1:]] if _pair(pair) else pair for pair in new["choices"]]
    return {**component, "props": new}


def _pair(choice: Any) -> bool:
    return isinstance(choice, list | tuple) and len(choice) > 1 and isinstance(choice[0], str)


def translated_html(text: str) -> str:
    """Static HTML of the studio with its texts translated; never used for user content."""

    def piece(match: re.Match[str]) -> str:
        words = match[0]
        if words.startswith("<"):
            return ATTRIBUTE.sub(lambda attribute: f' {attribute[1]}="{_escaped(attribute[2])}"', words)
        stripped = words.strip()
        return words.replace(stripped, _escaped(stripped)) if stripped else words

    return PIECE.sub(piece, text)


def _escaped(text: str) -> str:
    plain = html.unescape(text)
    result = tr(plain)
    return text if result == plain else html.escape(result)


# -- pages


class LanguageMiddleware:
    """Determines the language of each request, stores `?lang=…` in a cookie, and sets the language of pages; Gradio pages also
    get `head`. Plain ASGI, so that streams pass through untouched.
    """

    def __init__(self, app: ASGIApp, head: str = "") -> None:
        self.app, self.head = app, head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        requested = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])[0]
        code = choose(requested, cookie := headers.get("cookie", ""), headers.get("accept-language", ""))
        remember = bool(_known(requested)) and _known(requested) != _cookie(cookie)
        start: Message = {}
        body = b""

        async def answer(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                if MutableHeaders(scope=message).get("content-type", "").startswith("text/html"):
                    start = message
                else:
                    await send(message)
            elif not start:
                await send(message)
            else:
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                result = MutableHeaders(scope=start)
                body = _opened(body, code, self.head)
                result["Content-Length"] = str(len(body))
                result["Content-Language"] = TAGS[code]
                result.add_vary_header("Accept-Language, Cookie")
                if remember:
                    result.append("Set-Cookie", f"{COOKIE}={code}; Path=/; Max-Age={YEAR}; SameSite=Lax")
                await send(start)
                await send({**message, "body": body})

        token = _asked.set(code)
        try:
            await self.app(scope, receive, answer)
        finally:
            _asked.reset(token)


def _opened(body: bytes, code: str, head: str) -> bytes:
    """A page with its language set for the browser and, if it is Gradio's, for Gradio and the studio's scripts, and with `head`."""
    body = re.sub(rb'(<html[^<>]*?\blang=")[^"<>]*(")', rb"\g<1>" + TAGS[code].encode() + rb"\g<2>", body, count=1)
    if b"window.gradio_config" not in body:
        return body
    # Without it, the browser fetches the manifest without cookies, which a studio with accounts refuses.
    body = body.replace(b'rel="manifest"', b'rel="manifest" crossorigin="use-credentials"', 1)
    return body.replace(b"<head>", f"<head>{head}<script>{_script(code)}</script>".encode(), 1)


@cache
def _script(code: str) -> str:
    """The script that defines `tmSay('Next', {…})` and sets the browser language that Gradio reads."""
    from engine.workflows.explore.phrase_map import OF_DECODER, OF_ENCODER, OF_MEMORY
    from studio.i18n.extract import script_messages

    translations = messages(code)
    words = {
        message: translations[message]
        for message in (*script_messages(), OF_MEMORY, OF_ENCODER, OF_DECODER)
        if message in translations
    }
    data = json.dumps(words, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")
    return f"window.tmLanguage='{code}';window.tmTag='{TAGS[code]}';window.tmWords={data};{LANGUAGE_SCRIPT.read_text('utf-8')}"


def ago(moment: datetime.datetime) -> str:
    """A moment in the past in readable form: `just now`, `5 min ago`, `3 days ago`, `12 March 2026`."""
    seconds = (datetime.datetime.now(datetime.UTC) - moment).total_seconds()
    if seconds < 60:
        return tr("just now")
    if seconds < 5400:
        return tr("{count} min ago", count=round(seconds / 60))
    if seconds < 129600:
        return tr("{count} h ago", count=round(seconds / 3600))
    if seconds < 30 * 86400:
        return tr("{count} days ago", count=round(seconds / 86400))
    return day(moment)

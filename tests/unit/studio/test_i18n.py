"""The interface's languages: which one a request asks for, what is said in it, and that the catalog lacks nothing."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import InputError, StorageError, capitalised
from engine.messages import Message
from studio.i18n import translate as i18n
from studio.i18n.extract import ENGINE, STUDIO, collected
from studio.i18n.translate import (
    chosen_of,
    localized_config,
    messages,
    span,
    speaking,
    tr,
    translate_message,
    translated_html,
    trc,
    trn,
)


@pytest.mark.parametrize(
    ("asked", "cookie", "accepted", "expected"),
    [
        ("zh", f"{i18n.COOKIE}=en", "en-US", "zh"),
        ("xx", f"a=1; {i18n.COOKIE}=zh", "en-US", "zh"),
        ("", "", "fr, en;q=0.5, zh-TW;q=0.9", "zh"),
        ("", "", "zh-CN;q=0.2, en", "en"),
        ("", "", "fr", "en"),
        ("", 'x="', "zh;q=much", "en"),
        ("", "", "", "en"),
    ],
)
def test_the_address_comes_before_the_cookie_and_the_cookie_before_the_browser(
    asked: str, cookie: str, accepted: str, expected: str
) -> None:
    headers = {"Cookie": cookie, "Accept-Language": accepted}
    assert chosen_of(SimpleNamespace(headers=headers, query_params={"lang": asked})) == expected


def test_what_is_said_follows_the_reader_and_stays_english_without_a_translation() -> None:
    assert tr("Samples") == "Samples"
    assert trn("{count} plugin", "{count} plugins", 1200) == "1,200 plugins"
    with speaking("zh"):
        assert tr("Samples") == "样本"
        assert tr("no such message") == "no such message"
        assert trn("{count} plugin", "{count} plugins", 1) == "1 个插件"
        assert span(3720) == "62 分钟"
        assert span(7800) == "2 小时 10 分钟"
    assert span(7800) == "2 h 10 min"
    assert span(210_000) == "58 h"  # nobody plans such a run by the minute


def test_components_are_described_in_the_readers_language_and_the_original_stays() -> None:
    config = {
        "components": [
            {"id": 1, "type": "button", "props": {"value": "Start training"}},
            {"id": 2, "type": "textbox", "props": {"label": "Search", "placeholder": "Search", "value": "Search"}},
            {"id": 3, "type": "radio", "props": {"choices": [("Quick", "quick")], "value": "quick"}},
            {"id": 4, "type": "html", "props": {"value": '<h2 title="Search">Test files</h2>'}},
        ]
    }
    with speaking("zh"):
        button, field, radio, html = (component["props"] for component in localized_config(config)["components"])
    assert button["value"] == "开始训练"
    assert (field["label"], field["placeholder"]) == ("搜索", "搜索")
    assert field["value"] == "Search"  # what a person typed
    assert radio["choices"] == [["快速", "quick"]]
    assert html["value"] == '<h2 title="搜索">测试文件</h2>'
    assert config["components"][0]["props"]["value"] == "Start training"
    assert localized_config(config) is config


def test_a_translation_cannot_bring_markup_into_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "messages", lambda code: {"Tom & Ann": "<b>汤姆 & 安</b>"})
    with speaking("zh"):
        assert translated_html("<p>Tom &amp; Ann</p>") == "<p>&lt;b&gt;汤姆 &amp; 安&lt;/b&gt;</p>"


# -- what the engine says


def test_an_error_of_the_engine_is_shown_in_the_readers_language_with_its_values() -> None:
    error = StorageError(
        "{what} could not be written to {where}: no permission. Choose another folder.", what=capitalised("the plugin"), where="/a"
    )
    report = Message("Only {share:.0%} of the sentences look like {language}{looks}; check the samples.",
                     share=0.25, language=Message("German"), looks="")  # fmt: skip
    assert translate_message(report) == str(report)
    with speaking("zh"):
        assert translate_message(error.message) == "插件无法写入 /a：没有权限。请选择其他文件夹。"
        assert translate_message(report) == "只有 25% 的句子像是德语，请检查样本。"


def test_sentences_of_earlier_versions_are_looked_up_as_they_stand_and_never_formatted() -> None:
    stored = Message.restore("An odd sentence.", "{count:>99999999} {count.real}", {"count": 1})
    unfit = Message.restore("all 5 updates", "all {count:,} updates", {"count": "5"})
    with speaking("zh"):
        assert translate_message("There is nothing to undo.") == "没有可以撤销的操作。"
        assert translate_message("A sentence with {braces}.") == "A sentence with {braces}."
        assert translate_message(stored) == "An odd sentence."
        assert translate_message(unfit) == "all 5 updates"
        assert translate_message("") == ""


def test_the_toast_of_an_error_says_it_in_the_readers_language(monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.components import layout

    texts: list[str] = []
    monkeypatch.setattr(layout.gr, "Warning", lambda text, **_: texts.append(text))
    with speaking("zh"):
        layout._toast(InputError("There is nothing to undo."))
    assert texts == ["没有可以撤销的操作。"]


def test_errors_are_raised_as_data_and_translated_where_they_are_shown() -> None:
    translated = {"tr", "trn", "trc", "together", "listed", "span", "language_name", "translate_message"}
    for path in sorted(STUDIO.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Raise) or name == "Message" or name.endswith("Error"):
                called = {getattr(call.func, "id", "") for call in ast.walk(node) if isinstance(call, ast.Call)}
                assert not called & translated, f"{path}:{node.lineno}"


def test_every_template_of_the_engine_has_the_values_that_stand_in_it() -> None:
    seen = 0
    for path in sorted(ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if not isinstance(node, ast.Call) or not (name == "Message" or name.endswith(("Error", "Cancelled"))):
                continue
            keywords = {word.arg for word in node.keywords}
            texts = (
                [constant.value for constant in ast.walk(node.args[0]) if isinstance(constant, ast.Constant)] if node.args else []
            )
            if not keywords or None in keywords or not all(isinstance(value, str) for value in texts):
                continue
            for text in texts:
                assert set(fields(text)) == keywords, f"{path}:{node.lineno}: {text}"
                seen += 1
    assert seen > 20


# -- the catalog


def test_every_message_of_the_interface_has_a_translation() -> None:
    translations = messages("zh")
    missing = [form for message, many in collected().items() for form in (message, many) if form and form not in translations]
    assert missing == [], "add them to studio/i18n/locale/zh.po (python -m studio.i18n.extract)"


def test_translations_keep_the_placeholders_of_their_messages() -> None:
    translations = messages("zh")
    for message, many in collected().items():
        if not re.search(r"\{\w*\}", message):
            continue
        assert set(fields(translations[message])) in (set(fields(message)), set(fields(many or message))), message


def fields(text: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def test_the_catalog_holds_nothing_that_is_no_longer_said() -> None:
    import polib

    file = Path(i18n.LOCALE) / "zh.po"
    said_now = collected()
    held = [i18n.CONTEXT.join(filter(None, (entry.msgctxt, entry.msgid))) for entry in polib.pofile(str(file))]
    assert [message for message in held if message not in said_now] == []


def test_a_word_with_two_meanings_has_a_translation_in_each_context() -> None:
    with speaking("zh"):
        assert tr("memory") == "内存"  # of a machine
        assert trc("ablation", "memory") == "记忆"  # of a plugin
    assert trc("ablation", "memory") == "memory"


def test_every_kind_of_job_has_a_name_on_the_pages() -> None:
    from engine.jobs.registry import KINDS
    from studio.components.layout import WORDS

    assert set(WORDS) == set(KINDS)

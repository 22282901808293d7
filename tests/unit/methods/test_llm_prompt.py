"""Prompting a service, against a real HTTP server on this machine: what is sent, when it is tried again, what is kept."""

import contextlib
import http.server
import json
import threading
import time
import zipfile

import pytest

from engine.core.progress import Progress
from engine.core.settings import load_settings
from engine.corpora.types import SentencePair
from engine.decoding.translate import translate
from engine.errors import BundleError, Cancelled, CorpusError, MissingError, OptionError, TailorError
from engine.methods import Artefacts, get_method
from engine.methods.data import Samples
from engine.methods.llm_prompt.client import pause
from engine.methods.llm_prompt.config import LlmPromptConfig
from engine.methods.llm_prompt.method import preview
from engine.methods.llm_prompt.prompt import Examples, ngrams, overlap
from engine.plugins import BundleContent, Plugin, export_bundle
from tests.bases import SENTENCES, tiny_pair
from tests.waiting import until

METHOD = get_method("llm_prompt")
SECRET = "sk-the-secret-of-this-test"


class Server(http.server.ThreadingHTTPServer):
    """Answers chat completions; `plan` holds statuses to give first, else 200."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen, self.plan, self.lock, self.under_way, self.most = [], [], threading.Lock(), 0, 0
        self.delay, self.headers_out, self.answer = 0.0, {}, lambda text: f"译：{text}"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.seen.append((self.path, self.headers.get("Authorization"), body))
            status = server.plan.pop(0) if server.plan else 200
            server.under_way += 1
            server.most = max(server.most, server.under_way)
        time.sleep(server.delay)
        with server.lock:
            server.under_way -= 1
        text = server.answer(body["messages"][-1]["content"])
        result = {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
        if status != 200:
            result = {"error": {"message": f"no: {self.headers.get('Authorization')}"}}
        data = text.encode() if status == 200 and text.startswith("<html>") else json.dumps(result).encode()
        with contextlib.suppress(OSError):  # the other side may have given up
            self.send_response(status)
            for key, value in server.headers_out.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.fixture
def allowed(server, monkeypatch):
    monkeypatch.setenv("TAILORMT_ENDPOINTS", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("NO_PROXY", "*")


def plugin_for(base, server, **options):
    settings = {"model": "small", "backoff": 0.01, "base_url": server.url if server else ""}
    module = METHOD.build(base, Artefacts(), LlmPromptConfig.from_mapping({**settings, **options}))
    module.examples = Examples(tuple(SENTENCES))
    return Plugin(METHOD, module, {})


def test_each_text_is_one_request_with_the_nearest_samples_last(base, server, allowed):
    plugin = plugin_for(base, server, examples=3)
    translations = translate(base, ["The rain had stopped.", "  ", "My mother kept a letter."], plugin)
    assert translations == ["译：The rain had stopped.", "", "译：My mother kept a letter."]
    assert len(server.seen) == 2
    path, key, body = next(row for row in server.seen if "rain" in row[2]["messages"][-1]["content"])
    assert path == "/v1/chat/completions"
    assert key == f"Bearer {SECRET}"
    assert body["model"] == "small"
    assert body["temperature"] == 0.0
    text = body["messages"]
    assert text[0]["role"] == "system"
    assert "English (en)" in text[0]["content"]
    assert "Chinese (zh)" in text[0]["content"]
    assert [message["role"] for message in text[1:]] == ["user", "assistant"] * 3 + ["user"]
    assert (text[-3]["content"], text[-2]["content"]) == SENTENCES[0]


def test_a_dry_run_is_what_is_sent_and_sends_nothing(base, server, allowed):
    plugin = plugin_for(base, server, examples=2, max_tokens=50, instruction="Write like Lu Xun.")
    requests = preview(base, plugin.module, ["The road was long."])
    assert not server.seen
    assert SECRET not in json.dumps(requests)
    translate(base, ["The road was long."], plugin)
    assert [row[2] for row in server.seen] == [request["body"] for request in requests]
    assert requests[0]["url"] == f"{server.url}/chat/completions"
    assert requests[0]["body"]["max_tokens"] == 50
    assert requests[0]["body"]["messages"][0]["content"].endswith("Write like Lu Xun.")


def test_a_dry_run_of_several_plugins(base, server):
    from engine.cli.translate import preview as dry_run
    from engine.plugins import PluginStack

    plugin = plugin_for(base, server, examples=1)
    rows, text = dry_run(base, PluginStack([plugin]), ["The rain stopped.", " "])
    assert [json.loads(line) for line in text.splitlines()] == rows
    assert len(rows) == 1
    assert dry_run(base, None, ["The rain stopped."]) == ([], "Nothing would be sent: no plugin in use calls a service.")
    drafted = METHOD.preview(base, plugin_for(base, server, draft=True).module, ["The rain stopped."])
    assert "Draft: " in drafted[0]["body"]["messages"][-1]["content"]
    assert not server.seen


def test_nothing_is_sent_where_the_user_has_not_allowed_it(base, server, allowed, monkeypatch):
    for endpoints in ("", "https://api.example.com/v1", f"{server.url}x"):
        monkeypatch.setenv("TAILORMT_ENDPOINTS", endpoints)
        with pytest.raises(OptionError, match=r"which you have not allowed\. Set TAILORMT_ENDPOINTS=http://127"):
            translate(base, ["The rain stopped."], plugin_for(base, server))
    assert not server.seen


def test_without_its_key_it_says_which_variable_to_set(base, server, allowed, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(MissingError, match="set the environment variable OPENAI_API_KEY"):
        translate(base, ["The rain stopped."], plugin_for(base, server))
    assert translate(base, ["The rain stopped."], plugin_for(base, server, key_variable="")) == ["译：The rain stopped."]
    assert server.seen[0][1] is None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_tries_again_when_the_service_is_busy_or_fails(base, server, allowed, status):
    server.plan = [status, status]
    assert translate(base, ["The rain stopped."], plugin_for(base, server)) == ["译：The rain stopped."]
    assert len(server.seen) == 3


def test_it_gives_up_after_its_tries(base, server, allowed):
    server.plan = [503] * 9
    with pytest.raises(TailorError, match=r"did not answer in 3 attempts \(last: status 503\)"):
        translate(base, ["The rain stopped."], plugin_for(base, server, retries=2))
    assert len(server.seen) == 3


def test_a_request_that_takes_too_long_is_tried_again(base, server, allowed):
    server.delay = 0.6
    with pytest.raises(TailorError, match=r"nothing within 0\.2 seconds"):
        translate(base, ["The rain stopped."], plugin_for(base, server, timeout=0.2, retries=1))
    until(lambda: len(server.seen) == 2)  # the second may still be on its way to the server


def test_a_service_that_is_not_there_is_said(base, allowed, monkeypatch):
    nowhere = "http://127.0.0.1:1/v1"
    monkeypatch.setenv("TAILORMT_ENDPOINTS", nowhere)
    with pytest.raises(TailorError, match="did not answer in 2 attempts"):
        translate(base, ["The rain stopped."], plugin_for(base, None, base_url=nowhere, retries=1))


@pytest.mark.parametrize(("status", "words"), [(401, "does not accept the key in OPENAI_API_KEY"), (404, "status 404")])
def test_a_refusal_is_said_at_once_and_without_the_key(base, server, allowed, status, words):
    server.plan = [status]
    with pytest.raises(TailorError, match=words) as error:
        translate(base, ["The rain stopped."], plugin_for(base, server))
    assert SECRET not in str(error.value)
    assert len(server.seen) == 1


@pytest.mark.parametrize("answer", ["<html>hello</html>", None])
def test_another_form_of_answer_is_said(base, server, allowed, answer):
    server.answer = lambda text: answer if answer else ["not a text"]
    if answer is None:
        server.answer = lambda text: _NotText()
    with pytest.raises(TailorError, match="does not answer in OpenAI's"):
        translate(base, ["The rain stopped."], plugin_for(base, server))


class _NotText(dict):
    """Content that is no text, as some services give for calls of tools."""

    def startswith(self, _):
        return False


def test_no_more_requests_are_under_way_than_allowed(base, server, allowed):
    server.delay = 0.05
    texts = [a for a, _ in SENTENCES]
    assert translate(base, texts, plugin_for(base, server, concurrency=3)) == [f"译：{text}" for text in texts]
    assert 1 < server.most <= 3


def test_tokens_and_cost_are_shown(base, server, allowed):
    notes = []

    class Shown(Progress):
        def show(self, done, total, eta, note):
            notes.append(note)

    plugin = plugin_for(base, server, input_price=2.0, output_price=10.0)
    translate(base, [a for a, _ in SENTENCES[:4]], plugin, progress=Shown())
    assert notes[-1] == "440 tokens, cost 0.0012"  # 400 · 2 and 40 · 10 a million
    assert (plugin.module.usage.requests, plugin.module.usage.sent, plugin.module.usage.answered) == (4, 400, 40)


def test_the_user_can_stop_it(base, server, allowed):
    class Stop(Progress):
        def check(self):
            if server.seen:
                raise Cancelled("Stopped.")

    server.delay = 0.1
    texts = [f"Sentence {i}." for i in range(40)]
    with pytest.raises(Cancelled):
        translate(base, texts, plugin_for(base, server, concurrency=2), progress=Stop())
    time.sleep(0.3)
    assert len(server.seen) < 20


def test_a_draft_is_the_translation_of_the_base(base, server, allowed):
    vanilla = translate(base, ["The rain stopped."])[0]
    translate(base, ["The rain stopped."], plugin_for(base, server, draft=True))
    assert server.seen[0][2]["messages"][-1]["content"] == f"The rain stopped.\n\nDraft: {vanilla}"


def test_strength_zero_is_the_base_and_calls_nothing(base, server, allowed):
    assert translate(base, ["The rain stopped."], plugin_for(base, server), strength=0.0) == translate(base, ["The rain stopped."])
    assert not server.seen


def test_answers_of_several_lines_become_one(base, server, allowed):
    server.answer = lambda text: " 雨停了，\n\n天晴了。 \n"
    assert translate(base, ["The rain stopped."], plugin_for(base, server)) == ["雨停了，天晴了。"]


def test_nearness_is_dices_coefficient_of_character_ngrams():
    def slow(text):
        plain = "".join(text.lower().split())
        return {plain[i:j] for i in range(len(plain)) for j in range(i + 1, len(plain) + 1) if j - i <= 4}

    first, other = "The rain stopped.", "the Train stops"
    assert ngrams(first) == slow(first)
    a, b = slow(first), slow(other)
    assert overlap(ngrams(first), ngrams(other)) == pytest.approx(2 * len(a & b) / (len(a) + len(b)))
    assert overlap(ngrams(""), ngrams("")) == 0.0
    examples = Examples(tuple(SENTENCES))
    result = examples.chosen("We walked home.", LlmPromptConfig(examples=4))
    assert result[0][0] == 5
    assert [value for _, value in result] == sorted((value for _, value in result), reverse=True)
    random_ones = LlmPromptConfig(examples=4, choice="random")
    assert examples.chosen("We walked home.", random_ones) == examples.chosen("We walked home.", random_ones)
    assert len({position for position, _ in examples.chosen("We walked home.", random_ones)}) == 4


def test_making_a_plugin_calls_nothing_and_its_bundle_holds_no_secret(base, server, allowed, tmp_path):
    pairs = [SentencePair(a, b) for a, b in SENTENCES]
    config = LlmPromptConfig(model="small", base_url=server.url, examples=2)
    samples = Samples(tiny_pair(), [], [], tmp_path, load_settings(), sentence_pairs={"train": pairs[:6], "valid": pairs[6:]})
    artefacts = METHOD.prepare(samples, config, Progress())
    module = METHOD.build(base, artefacts, config)
    assert not module.state_dict()
    request = json.loads((tmp_path / "preview.json").read_text(encoding="utf-8"))
    assert request["body"]["messages"][-1]["content"] == SENTENCES[6][0]
    bundle = export_bundle(
        tmp_path / "p.zip", BundleContent(name="p", base=base, method=METHOD, config=config, module=module, files=artefacts.files)
    )
    with zipfile.ZipFile(bundle) as opened:
        assert "pairs.jsonl" in opened.namelist()
        assert all(SECRET.encode() not in opened.read(name) for name in opened.namelist())
    assert not server.seen
    plugin = Plugin.load(bundle, base, cache=tmp_path / "cache")
    assert translate(base, ["Hello."], plugin) == ["译：Hello."]
    items = plugin.attributions(base, SENTENCES[0][0], "")[0]["items"]
    assert items[0] == {"text": SENTENCES[0][1], "source": SENTENCES[0][0], "weight": 1.0}
    METHOD.replace_samples(base, plugin.module, pairs[6:], tmp_path)
    assert plugin.module.examples.pairs == tuple(SENTENCES[6:])
    with pytest.raises(CorpusError, match="no samples"):
        METHOD.prepare(
            Samples(tiny_pair(), [], [], tmp_path, load_settings(), sentence_pairs={"train": [], "valid": []}), config, Progress()
        )


def test_damaged_samples_in_a_bundle_are_said(base, tmp_path):
    with pytest.raises(BundleError, match=r"it has no pairs\.jsonl"):
        METHOD.open(tmp_path, base, LlmPromptConfig())
    (tmp_path / "pairs.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": 1}\n', encoding="utf-8")
    with pytest.raises(BundleError, match=r"line 2 of pairs\.jsonl is not a sentence pair"):
        METHOD.build(base, METHOD.open(tmp_path, base, LlmPromptConfig()), LlmPromptConfig())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_url": "api.example.com/v1"}, "is not an address"),
        ({"base_url": "http://api.example.com/v1"}, "is not encrypted"),
        ({"base_url": "https://me:pass@api.example.com/v1"}, "it must not contain a name, key or query"),
        ({"base_url": "https://api.example.com/v1?key=1"}, "it must not contain a name, key or query"),
        ({"key_variable": SECRET}, "never the key itself"),
        ({"key_variable": "PATH"}, "not the name of a variable ending in API_KEY"),
    ],
)
def test_unsafe_settings_are_refused(options, words):
    with pytest.raises(OptionError, match=words) as error:
        LlmPromptConfig.from_mapping(options)
    assert "pass@" not in str(error.value)
    assert SECRET not in str(error.value)


def test_the_service_says_how_long_to_wait():
    assert pause(1.0, 3, "2.5") == 2.5
    assert pause(1.0, 0, "9999") == 60.0
    assert 3.0 <= pause(1.0, 2, "Wed, 21 Oct 2026 07:28:00 GMT") <= 5.0

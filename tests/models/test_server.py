"""The server: OpenAI's answers and errors over a socket, streams, clients that go away, many at once."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ember_ml import models
from ember_ml.errors import ConfigError
from tests.reference import tokenizing

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

CONFIG = {
    **{"model_type": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64},
}
CHAT = [{"role": "user", "content": "the hat"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "small"
    models.from_config(CONFIG).save(path)
    tokenizing.write_tokenizer(path)
    return path


class Client:
    """Asks a server, by a connection for each request."""

    def __init__(self, port: int, app: Any, model: Any, tokenizer: Any) -> None:
        self.port, self.app, self.model, self.tokenizer = port, app, model, tokenizer

    def open(self, path: str, body: Any = None, **headers: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
        connection.request("GET" if body is None else "POST", path, data, named)
        return connection

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = self.open(path, body, **headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found

    def stream(self, path: str, body: Any) -> list[Any]:
        connection = self.open(path, {**body, "stream": True})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
        events = [text.removeprefix("data: ") for text in answer.read().decode().split("\n\n")]
        connection.close()
        assert events[-2:] == ["[DONE]", ""]
        return [json.loads(event) for event in events[:-2]]

    def wait_until_idle(self) -> bool:
        return any(self.app.state.writer.load == (0, 0) or time.sleep(0.01) for _ in range(500))


@pytest.fixture
def serve(folder: Path, backend: str) -> Iterator[Callable[..., Client]]:
    """Start servers on free ports of this machine."""
    from ember_ml.models.serving.app import make_app

    started: list[tuple[Any, threading.Thread]] = []

    def start(**settings: Any) -> Client:
        model, tokenizer = models.load(folder), models.tokenizer(folder)
        app = make_app(model, tokenizer, "small", **settings)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        started.append((server, thread))
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        return Client(server.servers[0].sockets[0].getsockname()[1], app, model, tokenizer)

    yield start
    for server, _ in started:
        server.should_exit = True
    for _, thread in started:
        thread.join(30)
        assert not thread.is_alive()


def test_models_are_listed(serve: Callable[..., Client]) -> None:
    client = serve()
    status, listed = client.ask("/v1/models")
    assert (status, listed["object"], [entry["id"] for entry in listed["data"]]) == (200, "list", ["small"])
    assert client.ask("/v1/models/small") == (200, listed["data"][0])


def test_texts_are_those_of_the_model(serve: Callable[..., Client]) -> None:
    client = serve()
    prompt = client.tokenizer.encode("the cat")
    wanted = client.model.generate(prompt, 9)
    request = {"model": "small", "prompt": "the cat", "max_tokens": 9, "temperature": 0}
    status, answer = client.ask("/v1/completions", request)
    assert (status, answer["object"], answer["model"]) == (200, "text_completion", "small")
    (choice,) = answer["choices"]
    assert choice["text"] == client.tokenizer.decode(wanted)
    assert choice["finish_reason"] == "length"
    counts = {"prompt_tokens": len(prompt), "completion_tokens": len(wanted)}
    assert answer["usage"] == {**counts, "total_tokens": sum(counts.values())}
    drawn = {"temperature": 0.8, "top_p": 0.9, "top_k": 40}
    status, answer = client.ask(
        "/v1/completions", {**request, **drawn, "prompt": [prompt, "a mat"], "n": 2, "seed": 5, "user": "me"}
    )
    texts = []
    for index, tokens in enumerate([prompt, prompt, *[client.tokenizer.encode("a mat")] * 2]):
        texts.append(client.tokenizer.decode(client.model.generate(tokens, 9, seed=5 + index, **drawn)))
    assert [choice["text"] for choice in answer["choices"]] == texts
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert answer["usage"]["prompt_tokens"] == len(prompt) + len(client.tokenizer.encode("a mat"))


def test_conversations_whole_and_in_pieces(serve: Callable[..., Client]) -> None:
    client = serve()
    wanted = client.tokenizer.decode(client.model.generate(client.tokenizer.encode_chat(CHAT), 12))
    request = {"model": "small", "messages": CHAT, "max_completion_tokens": 12, "temperature": 0}
    status, answer = client.ask("/v1/chat/completions", request)
    assert (status, answer["object"]) == (200, "chat.completion")
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": wanted, "refusal": None}
    parts = [{"role": "user", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "hat"}]}]
    assert client.ask("/v1/chat/completions", {**request, "messages": parts})[1]["choices"] == answer["choices"]
    events = client.stream("/v1/chat/completions", {**request, "stream_options": {"include_usage": True}})
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == wanted
    assert [event["choices"][0]["finish_reason"] for event in events[:-1]].count(None) == len(events) - 2
    assert (events[-1]["choices"], events[-1]["usage"]) == ([], answer["usage"])
    text = client.tokenizer.decode(client.model.generate(client.tokenizer.encode("the"), 9))
    stop = text[4:6]
    pieces = client.stream(
        "/v1/completions", {"model": "small", "prompt": "the", "max_tokens": 9, "temperature": 0, "stop": stop}
    )
    assert "".join(event["choices"][0]["text"] for event in pieces) == text.partition(stop)[0]
    assert pieces[-1]["choices"][0]["finish_reason"] == "stop"


def test_an_answer_fills_the_context_where_no_length_is_asked_for(serve: Callable[..., Client]) -> None:
    client = serve()
    _, answer = client.ask("/v1/chat/completions", {"model": "small", "messages": CHAT, "temperature": 0})
    assert (answer["choices"][0]["finish_reason"], answer["usage"]["total_tokens"]) == ("length", 64)


BAD: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"model": "other"}, 404, "model", "no model 'other'"),
    ({"model": None}, 400, "model", "must be the name"),
    ({"messages": None}, 400, "messages", "must be a list"),
    ({"messages": []}, 400, "messages", "must be a list"),
    ({"messages": ["hello"]}, 400, "messages", r"messages[0]"),
    ({"messages": [{"role": "user", "content": 7}]}, 400, "messages", "must be text"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages", "text alone"),
    ({"messages": [{"role": "judge", "content": ""}]}, 400, "messages", "unknown role judge"),
    ({"messages": [{"role": "user", "content": "x " * 99}]}, 400, "messages", "takes 64"),
    ({"max_tokens": 0}, 400, "max_tokens", "whole number"),
    ({"max_tokens": True}, 400, "max_tokens", "whole number"),
    ({"max_tokens": 64}, 400, "messages", "64 new ones"),
    ({"temperature": "hot"}, 400, "temperature", "number from 0"),
    ({"temperature": 2.5}, 400, "temperature", "number from 0"),
    ({"top_p": -1}, 400, "top_p", "number from 0"),
    ({"top_k": 0}, 400, "top_k", "whole number"),
    ({"seed": 1.5}, 400, "seed", "whole number"),
    ({"n": 1000}, 400, "n", "whole number"),
    ({"stop": ["a"] * 5}, 400, "stop", "up to 4"),
    ({"stop": [""]}, 400, "stop", "up to 4"),
    ({"stream": "yes"}, 400, "stream", "true or false"),
    ({"stream_options": {"include_usage": True}}, 400, "stream_options", "only for requests with stream"),
    ({"logprobs": True}, 400, "logprobs", "not served"),
    ({"tools": [{"type": "function"}]}, 400, "tools", "not served"),
    ({"response_format": {"type": "json_object"}}, 400, "response_format", "not served"),
    ({"presence_penalty": 0.5}, 400, "presence_penalty", "not served"),
    ({"temprature": 0.5}, 400, "temprature", "not a key"),
]


def test_bad_requests_get_the_error_of_openai(serve: Callable[..., Client]) -> None:
    client = serve()
    good = {
        "model": "small",
        "messages": CHAT,
        "max_tokens": 2,
        "logprobs": False,
        "presence_penalty": 0.0,
        "user": "x",
    }
    assert client.ask("/v1/chat/completions", good)[0] == 200
    for changes, wanted, param, message in BAD:
        status, answer = client.ask("/v1/chat/completions", {**good, **changes})
        assert (status, answer["error"]["param"]) == (wanted, param), changes
        assert set(answer["error"]) == {"message", "type", "param", "code"}
        assert answer["error"]["type"] == "invalid_request_error"
        assert message in answer["error"]["message"], changes
    prompts: list[Any] = [None, "", [], [[]], [5, 300], [-1], [True], {"a": 1}, ["a", 7], ["a"] * 200]
    for prompt in prompts:  # the empty text has the token of the beginning
        status, answer = client.ask("/v1/completions", {"model": "small", "prompt": prompt, "max_tokens": 1})
        assert (status, answer.get("error", {}).get("param")) == ((200, None) if prompt == "" else (400, "prompt"))
    for body in (b"{", b"[]", b"\xff", b"[" * 100_000):
        assert client.ask("/v1/completions", body)[0] == 400
    assert client.ask("/v1/completions", b" " * (17 << 20))[0] == 413
    assert client.ask("/v1/completions", good, Content_Type="text/plain")[0] == 415
    status, answer = client.ask("/v1/nothing")
    assert (status, answer["error"]["message"]) == (404, "Not Found: GET /v1/nothing")
    assert client.ask("/v1/completions")[0] == 405
    assert client.ask("/v1/models/other")[1]["error"]["code"] == "model_not_found"
    assert client.ask("/v1/models", Host="attacker.example")[0] == 403
    assert client.ask("/v1/models", Host=f"localhost:{client.port}")[0] == 200


def test_a_key_is_asked_for(serve: Callable[..., Client]) -> None:
    client = serve(api_key="secret")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"Authorization": "Bearer ä"}):
        status, answer = client.ask("/v1/models", **headers)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
    assert client.ask("/v1/models", Authorization="Bearer secret")[0] == 200


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_goes_away_frees_its_slot(
    streams: bool, serve: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(slots=1)
    slow = threading.Event()
    logits = type(client.model).logits
    monkeypatch.setattr(type(client.model), "logits", lambda *given: (slow.wait(0.2), logits(*given))[1])
    request = {"model": "small", "prompt": [9], "max_tokens": 63, "stream": streams, "temperature": 0, "stop": []}
    connection = client.open("/v1/completions", request)
    while client.app.state.writer.load != (1, 0):
        time.sleep(0.01)
    connection.close()
    assert client.wait_until_idle()  # the whole text would take longer
    slow.set()
    assert client.ask("/v1/completions", {"model": "small", "prompt": "a", "max_tokens": 2})[0] == 200


def test_a_failure_is_an_error_for_the_client_and_not_the_end(
    serve: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    request = {"model": "small", "prompt": "a", "max_tokens": 2}
    with monkeypatch.context() as changed:
        changed.setattr(type(client.model), "logits", lambda self, hidden: 1 / 0)
        status, answer = client.ask("/v1/completions", request)
        assert (status, answer["error"]["type"]) == (500, "server_error")
        connection = client.open("/v1/completions", {**request, "stream": True})
        assert "server_error" in connection.getresponse().read().decode()
        connection.close()
    assert client.ask("/v1/completions", request)[0] == 200


def test_a_hundred_streams_at_once_are_all_answered(serve: Callable[..., Client]) -> None:
    client = serve(slots=32)
    requests = [
        {"model": "small", "prompt": [3 + i, 7, i % 5 + 9], "max_tokens": 8, "temperature": 0.9, "seed": i}
        for i in range(100)
    ]

    def ask(request: dict[str, Any]) -> str:
        events = client.stream("/v1/completions", request)
        assert events[-1]["choices"][0]["finish_reason"] == "length"
        return "".join(event["choices"][0]["text"] for event in events)

    with ThreadPoolExecutor(100) as pool:
        found = list(pool.map(ask, requests))
    assert client.wait_until_idle()
    for request, text in list(zip(requests, found, strict=True))[::10]:
        tokens = client.model.generate(request["prompt"], 8, temperature=0.9, seed=request["seed"])
        assert text == client.tokenizer.decode(tokens)


def test_only_decoders_are_served(folder: Path) -> None:
    from ember_ml.models.serving.app import make_app

    sizes = {"d_model": 8, "d_ff": 8, "num_layers": 1, "num_heads": 2, "d_kv": 4, "vocab_size": 300}
    with pytest.raises(ConfigError, match="only decoders"):
        make_app(models.from_config({"model_type": "t5", **sizes}), models.tokenizer(folder), "x")

"""The server and OpenAI's own client: its calls are answered, its classes of errors raised, its streams complete."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.models.test_server import CHAT, Client, folder, serve

openai = pytest.importorskip("openai")
__all__ = ["folder", "serve"]


def _connect(client: Client, key: str = "secret") -> Any:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{client.port}/v1", api_key=key, max_retries=0)


def test_calls_of_the_client_are_answered(serve: Any) -> None:
    client = serve(api_key="secret")
    with _connect(client) as api:
        assert [model.id for model in api.models.list()] == ["small"]
        settings = {"model": "small", "max_tokens": 6, "temperature": 0}
        answer = api.chat.completions.create(messages=CHAT, **settings)
        wanted = client.tokenizer.decode(client.model.generate(client.tokenizer.encode_chat(CHAT), 6))
        assert answer.choices[0].message.content == wanted
        assert answer.usage.completion_tokens == 6
        text = api.completions.create(prompt="the cat", **settings).choices[0].text
        assert text == client.tokenizer.decode(client.model.generate(client.tokenizer.encode("the cat"), 6))
        errors: list[tuple[type[Exception], dict[str, Any]]] = [
            (openai.NotFoundError, {"model": "other"}),
            (openai.BadRequestError, {"temperature": 9}),
            (openai.BadRequestError, {"max_tokens": 10_000}),
        ]
        for kind, changes in errors:
            with pytest.raises(kind) as raised:
                api.chat.completions.create(messages=CHAT, **{**settings, **changes})
            assert raised.value.type == "invalid_request_error"  # type: ignore[attr-defined]
    with _connect(client, "wrong") as api, pytest.raises(openai.AuthenticationError):
        api.models.list()


@pytest.mark.long_with("torch", "mlx")
def test_a_hundred_streams_of_the_client(serve: Any) -> None:
    client = serve(slots=32)

    def ask(number: int) -> tuple[str, str | None]:
        messages = [{"role": "user", "content": f"the hat {number}"}]
        stream = api.chat.completions.create(
            model="small", messages=messages, max_tokens=8, temperature=0.9, seed=number, stream=True
        )
        chunks = [chunk.choices[0] for chunk in stream]
        return "".join(chunk.delta.content or "" for chunk in chunks), chunks[-1].finish_reason

    with _connect(client) as api, ThreadPoolExecutor(100) as pool:
        found = list(pool.map(ask, range(100)))
    assert [ending for _, ending in found] == ["length"] * 100
    assert client.wait_until_idle()
    for number in range(0, 100, 20):
        prompt = client.tokenizer.encode_chat([{"role": "user", "content": f"the hat {number}"}])
        tokens = client.model.generate(prompt, 8, temperature=0.9, seed=number)
        assert found[number][0] == client.tokenizer.decode(tokens)

"""The server: OpenAI's ``/v1/models``, ``/v1/completions`` and ``/v1/chat/completions`` as an application of Starlette.

A request is checked, its texts are handed to the :class:`Writer`, and their pieces come back from its thread through a
queue of the request. Whoever goes away before the end gives up the places of his texts.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ember_ml.errors import ConfigError
from ember_ml.models.causal import CausalModel
from ember_ml.models.generation import find_ends
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.serving.batch import Row
from ember_ml.models.serving.requests import ApiError, Request, Served, read_body, read_chat, read_completion
from ember_ml.models.serving.shapes import CHAT, COMPLETION, Shape
from ember_ml.models.serving.writer import Busy, Job, Writer
from ember_ml.models.text_streams import TextStream
from ember_ml.models.tokenizers import Tokenizer

__all__ = ["make_app"]

_MOST_BYTES = 16 << 20
"""Bytes of a request."""
_LOCAL = ("127.0.0.1", "localhost")


def make_app(
    model: PretrainedModel, tokenizer: Tokenizer, name: str, slots: int = 16, api_key: str | None = None
) -> Starlette:
    """Return the application that serves a decoder under ``name``, to ``slots`` texts at a time.

    With ``api_key`` each request needs the header ``Authorization: Bearer <key>``.
    """
    if not isinstance(model, CausalModel):
        raise ConfigError(f"{type(model).__name__} cannot be served: only decoders, which tell the next token, can")
    longest = getattr(model, "longest", None) or model.settings.integer("max_position_embeddings", 2048)
    served = Served(name, tokenizer, model.settings.integer("vocab_size"), longest)
    server = _Server(model, served)

    @asynccontextmanager
    async def run(app: Starlette) -> AsyncIterator[None]:
        app.state.writer = server.writer = Writer(model, slots)
        try:
            yield
        finally:
            await asyncio.to_thread(server.writer.close)

    return Starlette(
        routes=[
            Route("/v1/models", server.list_models),
            Route("/v1/models/{name:path}", server.show_model),
            Route("/v1/completions", server.complete, methods=["POST"]),
            Route("/v1/chat/completions", server.chat, methods=["POST"]),
        ],
        middleware=[Middleware(_Gate, api_key=api_key)],
        exception_handlers={ApiError: _answer_error, HTTPException: _answer_error, Exception: _answer_error},
        lifespan=run,
    )


class _Server:
    """The answers of the server."""

    writer: Writer

    def __init__(self, model: CausalModel, served: Served) -> None:
        self._served, self._ends, self._created = served, find_ends(model, None), int(time.time())

    def _describe(self) -> dict[str, Any]:
        return {"id": self._served.name, "object": "model", "created": self._created, "owned_by": "ember-ml"}

    async def list_models(self, request: HttpRequest) -> Response:
        return JSONResponse({"object": "list", "data": [self._describe()]})

    async def show_model(self, request: HttpRequest) -> Response:
        name = request.path_params["name"]
        if name != self._served.name:
            raise ApiError(
                f"there is no model {name!r:.200}; this server has {self._served.name!r}",
                "model",
                404,
                "model_not_found",
            )
        return JSONResponse(self._describe())

    async def complete(self, request: HttpRequest) -> Any:
        return await self._answer(request, read_completion, COMPLETION)

    async def chat(self, request: HttpRequest) -> Any:
        return await self._answer(request, read_chat, CHAT)

    async def _answer(
        self, http: HttpRequest, read: Callable[[Mapping[str, Any], Served], Request], shape: Shape
    ) -> ASGIApp:
        if http.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # which also keeps web pages out: a browser asks the server before it sends that type for another site
            raise ApiError("send JSON, with the header Content-Type: application/json", status=415)
        body = read_body(await _read(http))
        request = await asyncio.to_thread(read, body, self._served)
        return _Answer(self, request, shape)

    def start(self, request: Request, events: asyncio.Queue[Any]) -> list[Job]:
        """Hand the texts of a request to the writer; their pieces, ends and errors come as events."""
        loop = asyncio.get_running_loop()

        def hand_on(event: tuple[int, Any, Any]) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
                loop.call_soon_threadsafe(events.put_nowait, event)

        def make_job(index: int) -> Job:
            seed = None if request.seed is None else request.seed + index
            row = Row(request.prompts[index], request.temperature, request.top_k, request.top_p, seed)
            return Job(
                row,
                request.most[index],
                self._ends,
                TextStream(self._served.tokenizer, request.stop),
                lambda piece, ending: hand_on((index, piece, ending)),
                lambda error: hand_on((index, error, None)),
            )

        jobs = [make_job(index) for index in range(len(request.prompts))]
        try:
            self.writer.submit(jobs)
        except Busy as error:
            raise ApiError(str(error), status=429, code="rate_limit_exceeded", kind="rate_limit_error") from error
        return jobs

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._served.name


class _Answer:
    """The answer to a request for texts, whole or piece by piece."""

    def __init__(self, server: _Server, request: Request, shape: Shape) -> None:
        self._server, self._request, self._shape = server, request, shape
        self._head = {"id": f"{shape.prefix}-{uuid.uuid4().hex}", "created": int(time.time()), "model": server.name}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        events: asyncio.Queue[Any] = asyncio.Queue()
        jobs = self._server.start(self._request, events)
        write = self._stream if self._request.streams else self._send_whole
        working = asyncio.create_task(write(jobs, events, scope, receive, send))
        leaving = asyncio.create_task(_wait_for_end(receive))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
        finally:
            for job in jobs:
                job.cancel()
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    async def _pieces(self, jobs: list[Job], events: asyncio.Queue[Any]) -> AsyncIterator[tuple[int, str, str | None]]:
        """Yield (number of the text, piece, reason of its end or None) until all texts have ended."""
        left = len(jobs)
        while left:
            index, piece, ending = await events.get()
            if isinstance(piece, Exception):
                raise ApiError(f"the text could not be written: {piece}", status=500, kind="server_error") from piece
            left -= ending is not None
            yield index, piece, ending

    async def _send_whole(
        self, jobs: list[Job], events: asyncio.Queue[Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        texts: list[str] = [""] * len(jobs)
        endings: list[str | None] = [None] * len(jobs)
        async for index, piece, ending in self._pieces(jobs, events):
            texts[index] += piece
            endings[index] = ending
        choices = [self._shape.choice(i, *found) for i, found in enumerate(zip(texts, endings, strict=True))]
        body = {**self._head, "object": self._shape.whole, "choices": choices, "usage": self._usage(jobs)}
        await JSONResponse(body)(scope, receive, send)

    async def _stream(
        self, jobs: list[Job], events: asyncio.Queue[Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def send_chunk(choices: list[Any], **more: Any) -> None:
            more = more or ({"usage": None} if self._request.counts_usage else {})
            await _send_event(send, {**self._head, "object": self._shape.part, "choices": choices, **more})

        for index in range(len(jobs) if self._shape.opening else 0):
            await send_chunk([{"index": index, **(self._shape.opening or {})}])
        try:
            async for index, piece, ending in self._pieces(jobs, events):
                if piece or ending is not None:
                    await send_chunk([self._shape.piece(index, piece, ending)])
            if self._request.counts_usage:
                await send_chunk([], usage=self._usage(jobs))
            await _send_event(send, "[DONE]")
        except ApiError as error:  # the status was sent; clients look for the error among the events
            await _send_event(send, error.body)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _usage(self, jobs: list[Job]) -> dict[str, int]:
        written = sum(job.count for job in jobs)
        return {
            "prompt_tokens": self._request.read,
            "completion_tokens": written,
            "total_tokens": self._request.read + written,
        }


async def _send_event(send: Send, event: Any) -> None:
    text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    await send({"type": "http.response.body", "body": f"data: {text}\n\n".encode(), "more_body": True})


async def _wait_for_end(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(http: HttpRequest) -> bytes:
    """Return the body of a request, unless it is too long."""
    parts, size = [], 0
    async for part in http.stream():
        size += len(part)
        if size > _MOST_BYTES:
            raise ApiError(f"the request has more than {_MOST_BYTES} bytes", status=413)
        parts.append(part)
    return b"".join(parts)


class _Gate:
    """Lets requests in that are for this machine and, where a key is asked for, bring it."""

    def __init__(self, app: ASGIApp, api_key: str | None) -> None:
        self._app, self._key = app, None if api_key is None else f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = self._check(dict(scope["headers"])) if scope["type"] == "http" else None
        if error is None:
            await self._app(scope, receive, send)
        else:
            await JSONResponse(error.body, error.status)(scope, receive, send)

    def _check(self, headers: Mapping[bytes, bytes]) -> ApiError | None:
        host = headers.get(b"host", b"").decode("latin-1")
        host = host.rpartition(":")[0] or host
        if host.lower() not in _LOCAL:  # a web page that gave its own name this machine's address
            return ApiError(f"this server answers requests to 127.0.0.1 and localhost, not to {host!r:.80}", status=403)
        if self._key is not None and not hmac.compare_digest(headers.get(b"authorization", b""), self._key):
            return ApiError(
                "the request needs the header 'Authorization: Bearer KEY' with the key of this server",
                status=401,
                code="invalid_api_key",
            )
        return None


async def _answer_error(request: HttpRequest, error: Any) -> Response:
    """Return an error in OpenAI's form, whatever it is."""
    if isinstance(error, ApiError):
        found = error
    elif isinstance(error, HTTPException):
        found = ApiError(f"{error.detail}: {request.method} {request.url.path:.200}", status=error.status_code)
    else:
        found = ApiError(f"the server failed: {type(error).__name__}: {error}", status=500, kind="server_error")
    return JSONResponse(found.body, found.status)

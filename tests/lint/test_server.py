"""The language server, spoken to over its protocol in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ember_ml.lint.finding import Finding
from ember_ml.lint.server import ignore_line

pytest.importorskip("pygls")

TEXT = "from ember_ml.nn.tensor import Tensor\n\n\ndef double(x: Tensor) -> Tensor:\n    return x * 2  # ünïcode 🙂\n"


class Client:
    """Just enough of a language client."""

    def __init__(self) -> None:
        source = str(Path(__file__).parents[2] / "src")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-m", "ember_ml.lint", "server"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.number = 0

    def send(self, method: str, params: object, *, request: bool = False) -> int:
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self.number += 1
            message["id"] = self.number
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()
        return self.number

    def read(self) -> dict:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def request(self, method: str, params: object) -> dict:
        number = self.send(method, params, request=True)
        while (message := self.read()).get("id") != number:
            pass
        return message["result"]

    def notified(self, method: str) -> dict:
        while (message := self.read()).get("method") != method:
            pass
        return message["params"]


@pytest.fixture
def client(tmp_path: Path):
    client = Client()
    client.request("initialize", {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}})
    client.send("initialized", {})
    yield client
    client.request("shutdown", None)
    client.send("exit", None)
    client.process.wait(timeout=20)
    for pipe in (client.process.stdin, client.process.stdout):
        assert pipe is not None
        pipe.close()


def apply_edits(text: str, edits: list[dict]) -> str:
    def offset(place: dict) -> int:
        lines = text.split("\n")
        before = sum(len(line) + 1 for line in lines[: place["line"]])
        units = lines[place["line"]].encode("utf-16-le")[: place["character"] * 2]
        return before + len(units.decode("utf-16-le"))

    for edit in sorted(
        edits, key=lambda e: (e["range"]["start"]["line"], e["range"]["start"]["character"]), reverse=True
    ):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_diagnostic_quick_fix_and_hover(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "double.py").as_uri()
    client.send(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": TEXT}}
    )
    shown = client.notified("textDocument/publishDiagnostics")
    assert [(d["code"], d["range"]["start"]) for d in shown["diagnostics"]] == [
        ("EMB401", {"line": 4, "character": 11})
    ]

    place = shown["diagnostics"][0]["range"]
    actions = client.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": shown["diagnostics"]}},
    )
    assert [action["kind"] for action in actions] == ["quickfix", "quickfix", "source.fixAll"]
    repaired, ignored, all_repaired = (apply_edits(TEXT, action["edit"]["changes"][uri]) for action in actions)
    assert "return ops.multiply(x, 2)  # ünïcode 🙂" in repaired
    assert "from ember_ml import ops\n" in repaired
    assert all_repaired == repaired
    assert "  # ünïcode 🙂  # emberlint: ignore[EMB401] say why\n" in ignored

    hover = client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 13}}
    )
    assert "EMB401" in hover["contents"]["value"]

    for version, text in enumerate((repaired, ignored), 2):
        client.send(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
        )
        assert client.notified("textDocument/publishDiagnostics")["diagnostics"] == []


def test_no_comment_is_put_into_a_string() -> None:
    text = 'y = f(x * """\n""")\n'
    assert ignore_line(text, Finding("a.py", 1, 7, 2, 4, "EMB401", "")) is None
    assert ignore_line("y = x * 2\r\n", Finding("a.py", 1, 5, 1, 10, "EMB401", "")) == (
        9,
        "  # emberlint: ignore[EMB401] say why",
    )

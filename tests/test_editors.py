"""What an editor and a notebook offer: completion, hover, definitions and signatures of the public modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.nn.tensor import EmberTensor

SOURCE = Path(__file__).parents[1] / "src"
PROGRAM = """\
import ember_ml
from ember_ml import models, nn, ops, training

nn.Linear(3, 4)
training.Trainer(nn.Linear(1), "adam")
ops.concatenate([], 0)
models.load("folder")
nn.
training.
ops.
models.
"""
_ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
NAMES = {
    "nn": ("Linear", "src/ember_ml/nn/", "inputs", "Module"),
    "training": ("Trainer", "src/ember_ml/training/", "optimizer", "DataLoader"),
    "ops": ("concatenate", "src/ember_ml/ops/", "axis", "matmul"),
    "models": ("load", "src/ember_ml/models/", "folder", "add_lora"),
}
"""For each module: a name, where it is defined, one of its parameters, and another name of the module."""


class Server:
    """Pyright's language server, spoken to as an editor does."""

    def __init__(self, folder: Path) -> None:
        command = Path(sys.executable).with_name("pyright-langserver")
        self.process = subprocess.Popen(
            [str(command), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.document = (folder / "program.py").as_uri()
        root = {"uri": folder.as_uri(), "name": "work"}
        able = {"workspace": {"configuration": True, "workspaceFolders": True}}
        self.ask("initialize", processId=None, rootUri=root["uri"], capabilities=able, workspaceFolders=[root])
        self.tell("initialized")
        item = {"uri": self.document, "languageId": "python", "version": 1, "text": PROGRAM}
        self.tell("textDocument/didOpen", textDocument=item)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            assert self.process.poll() is None, "the language server has ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def tell(self, method: str, **parameters: Any) -> None:
        """Send a notice."""
        self._send({"method": method, "params": parameters})

    def ask(self, method: str, **parameters: Any) -> Any:
        """Send a question; answer those of the server until its reply comes."""
        self.number += 1
        self._send({"id": self.number, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self.number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if "id" in message:
                settings = {"pythonPath": sys.executable, "analysis": {"extraPaths": [str(SOURCE)]}}
                items = message.get("params", {}).get("items", [])
                told = [settings | settings["analysis"] if item.get("section") else None for item in items]
                self._send({"id": message["id"], "result": told or None})

    def look(self, question: str, line: int, column: int) -> Any:
        """Ask about a place in the program."""
        place = {"line": line, "character": column}
        return self.ask(f"textDocument/{question}", textDocument={"uri": self.document}, position=place)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("pyright-langserver", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("work")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    server = Server(folder)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.mark.parametrize("module", NAMES)
def test_an_editor_knows_the_public_names(module: str, server: Server) -> None:
    name, folder, parameter, other = NAMES[module]
    lines = PROGRAM.splitlines()
    used = next(number for number, line in enumerate(lines) if line.startswith(f"{module}.{name}("))
    column = lines[used].index(name) + 1

    asked = lines.index(f"{module}.")
    offered = {item["label"] for item in server.look("completion", asked, len(module) + 1)["items"]}
    assert {name, other} <= offered
    assert not {label for label in offered if label in ("import_module", "TYPE_CHECKING", "annotations")}

    shown = server.look("hover", used, column)["contents"]["value"]
    assert name in shown
    assert len(shown.split("---")[-1].strip()) > 20  # its documentation, below its signature
    (place, *_) = server.look("definition", used, column)
    assert folder in place.get("uri", place.get("targetUri"))
    (signature, *_) = server.look("signatureHelp", used, column + len(name))["signatures"]
    assert parameter in signature["label"]


SHELL = """\
import json, sys
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
shell.run_cell("from ember_ml import models, nn, ops, training")
found = {}
for module, name in json.loads(sys.argv[1]).items():
    with provisionalcompleter():
        begun = f"{module}.{name[:3]}"
        offered = [list(shell.Completer.completions(text, len(text))) for text in (f"{module}.", begun)]
    about = shell.object_inspect(f"{module}.{name}")
    signature = about["definition"] or about["init_definition"]
    found[module] = [*([item.text for item in items] for items in offered), about["docstring"], signature]
print(json.dumps(found))
"""


def test_notebooks_complete_the_public_names() -> None:
    pytest.importorskip("IPython")
    asked = json.dumps({module: name for module, (name, *_) in NAMES.items()})
    command = [sys.executable, "-c", SHELL, asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_ENVIRONMENT)
    for module, (every, begun, documentation, definition) in json.loads(done.stdout).items():
        name, _, parameter, other = NAMES[module]
        offered = {text.rpartition(".")[2] for text in every}
        assert {name, other} <= offered
        assert not {"import_module", "TYPE_CHECKING"} & offered
        assert name in {text.rpartition(".")[2] for text in begun}
        assert len(documentation) > 20
        assert parameter in definition


def test_notebooks_show_tensors_modules_and_dtypes(backend: str) -> None:
    shown = EmberTensor([[1.0, 2.5], [3.0, 4.0]])._repr_html_()
    assert f"(2, 2) float32 on {ops.get_default_device()}, {backend}" in shown
    assert "<pre>[[1. , 2.5],\n [3. , 4. ]]</pre>" in shown
    table = nn.Sequential(nn.Linear(3, 4), ops.relu)._repr_html_()
    assert "<tr><td>0.weight</td><td>Parameter</td><td>(4, 3)</td><td>12</td></tr>" in table
    assert table.endswith("<p>16 parameters, 16 trainable, 64 bytes</p>")
    assert ops.bfloat16._repr_html_() == "<code>bfloat16</code>: float, 16 bits"
